package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sttbench/providers"
)

func describeParams() []providers.Param {
	return []providers.Param{
		{Name: "prompt", Values: "text", Note: "free text, a list of words for whisper-1; not for gpt-realtime-whisper and gpt-4o-transcribe-diarize"},
		{Name: "keywords", Values: "words separated by commas", Note: "gpt-live-transcribe and gpt-transcribe"},
		{Name: "languages", Values: "ISO 639-1 codes separated by commas", Note: "gpt-live-transcribe and gpt-transcribe; replaces the language setting"},
		{Name: "delay", Values: strings.Join(delays, ", "), Note: "latency against accuracy; gpt-live-transcribe and gpt-realtime-whisper"},
		{Name: "noise_reduction", Values: strings.Join(noiseReductions, ", ")},
		{Name: "include", Values: "logprobs", Note: "adds log probabilities of tokens to the raw events"},
		{Name: "turn_detection", Values: strings.Join(detections, ", "), Default: "none if forced, else server_vad"},
		{Name: "threshold", Values: "0 to 1", Note: "with server_vad; the vendor's default is 0.5"},
		{Name: "prefix_padding_ms", Values: "whole number from 0", Note: "with server_vad; the vendor's default is 300"},
		{Name: "silence_duration_ms", Values: "whole number from 0", Note: "with server_vad; the vendor's default is 500"},
		{Name: "eagerness", Values: strings.Join(eagernesses, ", "), Note: "with semantic_vad"},
	}
}

// The closed sets of values. For noise_reduction and turn_detection "none" is
// our word for the API's null.
var (
	delays          = []string{"minimal", "low", "medium", "high", "xhigh"}
	noiseReductions = []string{"none", "near_field", "far_field"}
	detections      = []string{"none", "server_vad", "semantic_vad"}
	eagernesses     = []string{"low", "medium", "high", "auto"}
)

const includeLogprobs = "item.input_audio_transcription.logprobs"

type updateMessage struct {
	Type    string        `json:"type"`
	EventID string        `json:"event_id"`
	Session sessionConfig `json:"session"`
}

type sessionConfig struct {
	Type  string `json:"type"`
	Audio struct {
		Input inputConfig `json:"input"`
	} `json:"audio"`
	Include []string `json:"include,omitempty"`
}

type inputConfig struct {
	Format struct {
		Type string `json:"type"`
		Rate int    `json:"rate"`
	} `json:"format"`
	Transcription transcriptionConfig `json:"transcription"`
	// TurnDetection is always sent: where it is left out, sessions of some models
	// start with server_vad. null switches it off.
	TurnDetection *detectionConfig `json:"turn_detection"`
	// NoiseReduction is left out unless it was asked for, since the update is
	// merged into the session; null switches it off.
	NoiseReduction json.RawMessage `json:"noise_reduction,omitempty"`
}

type transcriptionConfig struct {
	Model     string   `json:"model"`
	Language  string   `json:"language,omitempty"`
	Languages []string `json:"languages,omitempty"`
	Prompt    string   `json:"prompt,omitempty"`
	Keywords  []string `json:"keywords,omitempty"`
	Delay     string   `json:"delay,omitempty"`
}

type detectionConfig struct {
	Type              string   `json:"type"`
	Threshold         *float64 `json:"threshold,omitempty"`
	PrefixPaddingMS   *int     `json:"prefix_padding_ms,omitempty"`
	SilenceDurationMS *int     `json:"silence_duration_ms,omitempty"`
	Eagerness         string   `json:"eagerness,omitempty"`
}

// sessionUpdate builds the configuration message, refusing what the API refuses
// for the model, so that the user learns of it before a session is paid for.
func sessionUpdate(cfg providers.Config) ([]byte, error) {
	m := findModel(cfg.Model)
	msg := updateMessage{Type: "session.update", EventID: "config"}
	msg.Session.Type = "transcription"
	in := &msg.Session.Audio.Input
	in.Format.Type, in.Format.Rate = "audio/pcm", sampleRate
	in.Transcription.Model = m.id

	detection := "server_vad"
	if cfg.Forced {
		detection = "none"
	}
	var tuning detectionConfig
	for _, param := range slices.Sorted(maps.Keys(cfg.Params)) {
		if err := setParam(&msg.Session, &detection, &tuning, m, param, cfg.Params[param]); err != nil {
			return nil, err
		}
	}
	if err := setLanguage(&in.Transcription, m, cfg.Language); err != nil {
		return nil, err
	}
	if err := checkDetection(cfg.Forced, detection, tuning, m); err != nil {
		return nil, err
	}
	if detection != "none" {
		tuning.Type = detection
		in.TurnDetection = &tuning
	}
	return json.Marshal(msg)
}

func setParam(s *sessionConfig, detection *string, tuning *detectionConfig, m model, param, value string) (err error) {
	in := &s.Audio.Input
	t := &in.Transcription
	switch param {
	case "prompt":
		if m.noPrompt {
			return notFor(param, m)
		}
		t.Prompt = value
	case "keywords":
		if !m.hints && !m.unknown {
			return notFor(param, m)
		}
		t.Keywords, err = list(param, value)
	case "languages":
		if !m.hints && !m.unknown {
			return notFor(param, m)
		}
		if t.Languages, err = list(param, value); err != nil {
			return err
		}
		for i, tag := range t.Languages {
			if t.Languages[i], err = isoLanguage("param languages", tag); err != nil {
				return err
			}
		}
	case "delay":
		if !m.delay && !m.unknown {
			return notFor(param, m)
		}
		t.Delay, err = oneOf(param, value, delays)
	case "noise_reduction":
		if value, err = oneOf(param, value, noiseReductions); value == "none" {
			in.NoiseReduction = json.RawMessage("null")
		} else {
			in.NoiseReduction = json.RawMessage(`{"type":"` + value + `"}`)
		}
	case "include":
		if value != "logprobs" && value != includeLogprobs {
			return configError("param include", fmt.Sprintf("%q is unknown", value), "the API has logprobs only")
		}
		s.Include = []string{includeLogprobs}
	case "turn_detection":
		*detection, err = oneOf(param, value, detections)
	case "threshold":
		var x float64
		if x, err = strconv.ParseFloat(value, 64); err != nil || !(x >= 0 && x <= 1) {
			return configError("param threshold", fmt.Sprintf("%q is not a number from 0 to 1", value), "")
		}
		tuning.Threshold = &x
	case "prefix_padding_ms":
		tuning.PrefixPaddingMS, err = milliseconds(param, value)
	case "silence_duration_ms":
		tuning.SilenceDurationMS, err = milliseconds(param, value)
	case "eagerness":
		tuning.Eagerness, err = oneOf(param, value, eagernesses)
	default:
		return configError("param "+param, "is unknown", "`sttbench providers` lists the parameters")
	}
	return err
}

// setLanguage sends the language in the field that the model takes; the API
// refuses both at once.
func setLanguage(t *transcriptionConfig, m model, tag string) error {
	if tag == "" || t.Languages != nil {
		return nil
	}
	code, err := isoLanguage("language", tag)
	if err != nil {
		return err
	}
	if m.hints {
		t.Languages = []string{code}
	} else {
		t.Language = code
	}
	return nil
}

func checkDetection(forced bool, detection string, tuning detectionConfig, m model) error {
	switch {
	case detection != "none" && m.noVAD:
		return configError("model", m.id+" has no turn detection of its own",
			"force the turn ends and leave turn_detection out, or take a model such as gpt-4o-mini-transcribe or whisper-1")
	case detection == "none" && !forced:
		return configError("param turn_detection", "is none although turn ends are not forced: no turn would ever be answered",
			"force the turn ends, or set server_vad or semantic_vad")
	case detection != "server_vad" && (tuning.Threshold != nil || tuning.PrefixPaddingMS != nil || tuning.SilenceDurationMS != nil):
		return configError("param turn_detection", "is "+detection+", but threshold, prefix_padding_ms and silence_duration_ms tune server_vad",
			"set turn_detection to server_vad or leave them out")
	case detection != "semantic_vad" && tuning.Eagerness != "":
		return configError("param turn_detection", "is "+detection+", but eagerness tunes semantic_vad",
			"set turn_detection to semantic_vad or leave it out")
	}
	return nil
}

func notFor(param string, m model) error {
	return configError("param "+param, "is refused by model "+m.id, "leave it out or take another model")
}

func oneOf(param, value string, allowed []string) (string, error) {
	if slices.Contains(allowed, value) {
		return value, nil
	}
	return "", configError("param "+param, fmt.Sprintf("%q is not one of %s", value, strings.Join(allowed, ", ")), "")
}

func milliseconds(param, value string) (*int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return nil, configError("param "+param, fmt.Sprintf("%q is not a whole number of milliseconds from 0", value), "")
	}
	return &n, nil
}

// list splits at commas. The API refuses empty lists.
func list(param, value string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, configError("param "+param, "an entry is empty", "separate entries by single commas, or leave the parameter out")
		}
		out = append(out, part)
	}
	return out, nil
}

// isoLanguage takes the language out of a BCP 47 tag; the API knows no regions.
func isoLanguage(field, tag string) (string, error) {
	code := strings.ToLower(tag)
	if i := strings.IndexAny(code, "-_"); i >= 0 {
		code = code[:i]
	}
	letters := strings.Trim(code, "abcdefghijklmnopqrstuvwxyz") == ""
	if !letters || len(code) < 2 || len(code) > 3 {
		return "", configError(field, fmt.Sprintf("%q does not begin with an ISO 639 code", tag), "for example en; leave it out to let the vendor detect it")
	}
	return code, nil
}
