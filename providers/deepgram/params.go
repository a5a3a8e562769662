package deepgram

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sttbench/providers"
)

// kind is the type of a parameter's value.
type kind int

const (
	boolean kind = iota + 1
	text
	milliseconds // a whole number, or false where off is allowed
	list         // repeated key; the user separates values with commas
)

// param is one parameter of /v1/listen that a user may set.
type param struct {
	name string
	kind kind
	off  bool // false is a value too
	note string
}

// params lists what the API specification of 2026-07-22 names, besides what we
// set ourselves. no_delay is not in it, but is sent by others.
func params() []param {
	return []param{
		{"interim_results", boolean, false, "send partial text; preset true"},
		{"endpointing", milliseconds, true, "silence that ends an utterance; vendor's default 10; preset false when forced"},
		{"utterance_end_ms", milliseconds, false, "UtteranceEnd after that gap between words; at least 1000; needs interim_results=true"},
		{"vad_events", boolean, false, "send SpeechStarted"},
		{"punctuate", boolean, false, ""},
		{"smart_format", boolean, false, "may hold finals back while a number is being spoken"},
		{"no_delay", boolean, false, "with smart_format: do not hold back (not in the specification)"},
		{"numerals", boolean, false, ""},
		{"dictation", boolean, false, ""},
		{"filler_words", boolean, false, ""},
		{"profanity_filter", boolean, false, ""},
		{"keyterm", list, false, "terms to prefer; nova-3 only"},
		{"keywords", list, false, "word:boost; nova-2 and older only"},
		{"redact", list, false, "pci, numbers, aggressive_numbers, ssn, true"},
		{"replace", list, false, "find:replacement"},
		{"search", list, false, ""},
		{"tag", list, false, "label in the vendor's usage reports, up to 128 characters"},
		{"extra", list, false, "key:value, echoed in the metadata"},
		{"diarize", boolean, false, ""},
		{"diarize_model", text, false, "latest, v1"},
		{"detect_entities", boolean, false, ""},
		{"mip_opt_out", boolean, false, "keep the audio out of the vendor's model improvement"},
		{"version", text, false, "model version"},
	}
}

// refused explains the parameters that exist and cannot be set here.
func refused() map[string]string {
	const ours = "set by sttbench from the audio"
	const flux = "belongs to Flux (/v2/listen), another protocol"
	const away = "would send the results elsewhere"
	return map[string]string{
		"model": "set it as the target's model", "language": "set it as the target's language",
		"encoding": ours, "sample_rate": ours, "channels": ours, "multichannel": ours,
		"callback": away, "callback_method": away,
		"eot_threshold": flux, "eager_eot_threshold": flux, "eot_timeout_ms": flux, "language_hint": flux,
	}
}

func describeParams() []providers.Param {
	values := map[kind]string{boolean: "true, false", text: "text", milliseconds: "milliseconds", list: "values separated by commas"}
	var all []providers.Param
	for _, p := range params() {
		d := providers.Param{Name: p.name, Values: values[p.kind], Note: p.note}
		if p.off {
			d.Values += ", false"
		}
		if p.name == "interim_results" {
			d.Default = "true"
		}
		all = append(all, d)
	}
	return all
}

// query builds the URL's query from the preset and the user's parameters.
func query(cfg providers.Config) (url.Values, error) {
	model := cmp.Or(cfg.Model, "nova-3")
	if strings.HasPrefix(model, "flux") {
		return nil, bad("model", fmt.Sprintf("%s speaks another protocol (/v2/listen)", model), "choose a nova model")
	}
	q := url.Values{
		"model":           {model},
		"encoding":        {"linear16"},
		"sample_rate":     {strconv.Itoa(cfg.SampleRate)},
		"channels":        {"1"},
		"interim_results": {"true"},
	}
	if cfg.Language != "" {
		q.Set("language", cfg.Language)
	}
	if cfg.Forced {
		q.Set("endpointing", "false")
	}
	for key, value := range cfg.Params {
		values, err := check(key, value)
		if err != nil {
			return nil, err
		}
		q[key] = values
	}
	return q, contradictions(q, model)
}

// check validates one user parameter and splits lists.
func check(key, value string) ([]string, error) {
	all := params()
	i := slices.IndexFunc(all, func(p param) bool { return p.name == key })
	if i < 0 {
		return nil, unknown(key, all)
	}
	p := all[i]
	fail := func(want string) ([]string, error) {
		return nil, bad("param "+key, fmt.Sprintf("%q is not %s", value, want), "")
	}
	switch p.kind {
	case boolean:
		if value != "true" && value != "false" {
			return fail("true or false")
		}
	case milliseconds:
		if p.off && value == "false" {
			break
		}
		// strconv would take a sign, too.
		if n, err := strconv.ParseUint(value, 10, 31); err != nil || strconv.FormatUint(n, 10) != value {
			if p.off {
				return fail("a whole number of milliseconds or false")
			}
			return fail("a whole number of milliseconds")
		}
	case text:
		if value == "" {
			return fail("a value")
		}
	case list:
		values := strings.Split(value, ",")
		for i, v := range values {
			if values[i] = strings.TrimSpace(v); values[i] == "" {
				return fail("a list of values separated by commas")
			}
		}
		return values, nil
	}
	return []string{value}, nil
}

// contradictions refuses what the vendor would answer with HTTP 400.
func contradictions(q url.Values, model string) error {
	if end := q.Get("utterance_end_ms"); end != "" {
		if n, _ := strconv.Atoi(end); n < 1000 {
			return bad("param utterance_end_ms", end+" is below 1000", "use at least 1000")
		}
		if q.Get("interim_results") != "true" {
			return bad("param utterance_end_ms", "needs interim_results=true", "leave interim_results alone")
		}
	}
	// Custom model ids may be of either generation; the vendor judges them.
	nova3 := strings.HasPrefix(model, "nova-3")
	older := strings.HasPrefix(model, "nova-2") || model == "nova" || strings.HasPrefix(model, "nova-general") ||
		strings.HasPrefix(model, "nova-phonecall") || strings.HasPrefix(model, "enhanced") || strings.HasPrefix(model, "base")
	if q.Has("keyterm") && older {
		return bad("param keyterm", "not available with "+model, "use keywords, or a nova-3 model")
	}
	if q.Has("keywords") && nova3 {
		return bad("param keywords", "not available with "+model, "use keyterm")
	}
	return nil
}

func bad(field, problem, hint string) error {
	return &providers.ConfigError{Provider: name, Field: field, Problem: problem, Hint: hint}
}

// unknown names the parameters that may have been meant.
func unknown(key string, all []param) error {
	if why, ok := refused()[key]; ok {
		return bad("param "+key, "cannot be set", why)
	}
	var near, names []string
	for _, p := range all {
		names = append(names, p.name)
		if distance(key, p.name) <= 2 || (len(key) > 3 && strings.Contains(p.name, key)) {
			near = append(near, p.name)
		}
	}
	hint := "known are " + strings.Join(names, ", ")
	if near != nil {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return bad("param "+key, "unknown", hint)
}

// distance is the Levenshtein distance; long keys are far from everything.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
