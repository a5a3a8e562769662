package deepgram

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options is what a stream's query asks for, as far as the emulator acts on it.
type options struct {
	model        string
	sampleRate   int
	interim      bool
	punctuate    bool
	vadEvents    bool
	endpointing  time.Duration // 0: off
	utteranceEnd time.Duration // 0: off
}

// refusedQuery is why a query is refused.
type refusedQuery struct {
	status     int
	code, text string
}

func badQuery(format string, args ...any) *refusedQuery {
	return &refusedQuery{http.StatusBadRequest, "INVALID_QUERY_PARAMETER", fmt.Sprintf(format, args...)}
}

// queryNames lists the parameters of /v1/listen: switches, and those with a
// value of their own.
func queryNames() (switches, others []string) {
	return strings.Fields("multichannel interim_results vad_events punctuate smart_format numerals dictation " +
			"filler_words profanity_filter no_delay diarize detect_entities mip_opt_out"),
		strings.Fields("model encoding sample_rate channels language endpointing utterance_end_ms keyterm keywords " +
			"redact replace search tag extra diarize_model version callback callback_method")
}

func parseOptions(q url.Values) (options, *refusedQuery) {
	switches, others := queryNames()
	for name, values := range q {
		switch {
		case slices.Contains(switches, name):
			if v := values[0]; v != "true" && v != "false" {
				return options{}, badQuery("Invalid value %q for %s: expected true or false.", v, name)
			}
		case !slices.Contains(others, name):
			return options{}, badQuery("Unknown query parameter: %s.", name)
		}
	}
	o := options{
		model:       q.Get("model"),
		interim:     q.Get("interim_results") == "true",
		punctuate:   q.Get("punctuate") == "true" || q.Get("smart_format") == "true",
		vadEvents:   q.Get("vad_events") == "true",
		endpointing: 10 * time.Millisecond,
	}
	if o.model == "" {
		o.model = "base"
	}
	if bad := o.parseAudio(q); bad != nil {
		return o, bad
	}
	if bad := o.parseEnds(q); bad != nil {
		return o, bad
	}
	return o, checkModel(o.model, q)
}

func (o *options) parseAudio(q url.Values) *refusedQuery {
	if enc := q.Get("encoding"); enc != "linear16" {
		return badQuery("Encoding %q: this emulator understands linear16 only.", enc)
	}
	rate, err := strconv.Atoi(q.Get("sample_rate"))
	if err != nil || rate < 8000 || rate > 48000 {
		return badQuery("Invalid sample_rate %q: expected 8000 to 48000.", q.Get("sample_rate"))
	}
	o.sampleRate = rate
	if ch := q.Get("channels"); (ch != "" && ch != "1") || q.Get("multichannel") == "true" {
		return badQuery("This emulator understands one channel only.")
	}
	return nil
}

func (o *options) parseEnds(q url.Values) *refusedQuery {
	switch e := q.Get("endpointing"); e {
	case "", "true":
	case "false":
		o.endpointing = 0
	default:
		ms, err := strconv.ParseUint(e, 10, 31)
		if err != nil {
			return badQuery("Invalid endpointing %q: expected milliseconds or false.", e)
		}
		o.endpointing = time.Duration(ms) * time.Millisecond
	}
	if e := q.Get("utterance_end_ms"); e != "" {
		ms, err := strconv.ParseUint(e, 10, 31)
		if err != nil || ms < 1000 {
			return badQuery("Invalid utterance_end_ms %q: expected at least 1000.", e)
		}
		if !o.interim {
			return badQuery("utterance_end_ms requires interim_results=true.")
		}
		o.utteranceEnd = time.Duration(ms) * time.Millisecond
	}
	return nil
}

// checkModel knows the public families and takes anything that looks like the id
// of a custom model.
func checkModel(model string, q url.Values) *refusedQuery {
	custom := len(model) == 36 && strings.Count(model, "-") == 4
	family := func(name string) bool { return model == name || strings.HasPrefix(model, name+"-") }
	if !custom && !family("nova") && !family("enhanced") && !family("base") {
		if strings.HasPrefix(model, "flux") {
			return badQuery("Model %s is served by /v2/listen.", model)
		}
		return &refusedQuery{http.StatusForbidden, "INSUFFICIENT_PERMISSIONS", noModel}
	}
	nova3 := family("nova-3")
	if q.Has("keyterm") && !nova3 && !custom {
		return badQuery("Keyterm is not supported by model %s.", model)
	}
	if q.Has("keywords") && nova3 {
		return badQuery("Keywords are not supported by model %s; use keyterm.", model)
	}
	return nil
}
