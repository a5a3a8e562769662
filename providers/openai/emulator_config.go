package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// emulatorConfig is a session's configuration as the server holds and echoes it.
type emulatorConfig struct {
	emulatorInput
	Include []string

	detectionSet bool // by the client, so that no default replaces it
}

type emulatorInput struct {
	Format         emulatorFormat         `json:"format"`
	Transcription  *emulatorTranscription `json:"transcription"`
	NoiseReduction *emulatorNoise         `json:"noise_reduction"`
	TurnDetection  *emulatorVAD           `json:"turn_detection"`
}

type emulatorFormat struct {
	Type string `json:"type"`
	Rate int    `json:"rate"`
}

type emulatorTranscription struct {
	Model     string        `json:"model"`
	Language  string        `json:"language,omitempty"`
	Languages notEmpty      `json:"languages,omitempty"`
	Keywords  notEmpty      `json:"keywords,omitempty"`
	Prompt    string        `json:"prompt,omitempty"`
	Delay     emulatorDelay `json:"delay,omitempty"`
}

type emulatorNoise struct {
	Type string `json:"type"`
}

type emulatorVAD struct {
	Type              string   `json:"type"`
	Threshold         *float64 `json:"threshold,omitempty"`
	PrefixPaddingMS   *int     `json:"prefix_padding_ms,omitempty"`
	SilenceDurationMS *int     `json:"silence_duration_ms,omitempty"`
	Eagerness         string   `json:"eagerness,omitempty"`
}

// silence is how long the turn detection waits; how long semantic_vad does is
// the vendor's secret.
func (v *emulatorVAD) silence() time.Duration {
	if v.SilenceDurationMS == nil {
		return 500 * time.Millisecond
	}
	return time.Duration(*v.SilenceDurationMS) * time.Millisecond
}

func (v *emulatorVAD) padding() time.Duration {
	if v.PrefixPaddingMS == nil {
		return 0
	}
	return time.Duration(*v.PrefixPaddingMS) * time.Millisecond
}

// defaultVAD is the server_vad of sessions that do not say what they want.
func defaultVAD() *emulatorVAD {
	threshold, padding, silence := 0.5, 300, 500
	return &emulatorVAD{Type: "server_vad", Threshold: &threshold, PrefixPaddingMS: &padding, SilenceDurationMS: &silence}
}

// notEmpty is a list that the API takes neither empty nor null.
type notEmpty []string

func (l *notEmpty) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("empty list")
	}
	*l = list
	return nil
}

type emulatorDelay string

func (d *emulatorDelay) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if !slices.Contains([]string{"minimal", "low", "medium", "high", "xhigh"}, text) {
		return fmt.Errorf("unknown delay %q", text)
	}
	*d = emulatorDelay(text)
	return nil
}

// merge applies a session.update: what it leaves out is kept, null clears turn
// detection and noise reduction. The receiver is left as it was.
func (c emulatorConfig) merge(patch json.RawMessage) (emulatorConfig, *emulatorError) {
	var msg struct {
		Type  *string `json:"type"`
		Audio struct {
			Input struct {
				Format         *emulatorFormat `json:"format"`
				Transcription  json.RawMessage `json:"transcription"`
				NoiseReduction json.RawMessage `json:"noise_reduction"`
				TurnDetection  json.RawMessage `json:"turn_detection"`
			} `json:"input"`
		} `json:"audio"`
		Include *[]string `json:"include"`
	}
	if err := strictly("session", patch, &msg); err != nil {
		return c, err
	}
	if msg.Type == nil {
		return c, &emulatorError{Code: "missing_required_parameter", Param: "session.type", Message: "Missing required parameter: 'session.type'."}
	}
	if *msg.Type != "transcription" {
		return c, badValue("session.type", "A session's type cannot be changed.")
	}
	in := msg.Audio.Input
	if in.Format != nil {
		c.Format = *in.Format
	}
	if in.Transcription != nil {
		t := emulatorTranscription{}
		if c.Transcription != nil {
			t = *c.Transcription
		}
		if err := strictly("session.audio.input.transcription", in.Transcription, &t); err != nil {
			return c, err
		}
		c.Transcription = &t
	}
	if in.NoiseReduction != nil {
		c.NoiseReduction = nil
		if err := strictly("session.audio.input.noise_reduction", in.NoiseReduction, &c.NoiseReduction); err != nil {
			return c, err
		}
	}
	if in.TurnDetection != nil {
		c.TurnDetection, c.detectionSet = nil, true
		if err := strictly("session.audio.input.turn_detection", in.TurnDetection, &c.TurnDetection); err != nil {
			return c, err
		}
	}
	if msg.Include != nil {
		c.Include = *msg.Include
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if !c.detectionSet && c.Transcription != nil && !streams(c.Transcription.Model) {
		c.TurnDetection = defaultVAD()
	}
	return c, nil
}

func (c emulatorConfig) check() *emulatorError {
	const in = "session.audio.input."
	if c.Format != (emulatorFormat{"audio/pcm", sampleRate}) {
		return badValue(in+"format", "The emulator takes audio/pcm at 24000 only.")
	}
	if n := c.NoiseReduction; n != nil && n.Type != "near_field" && n.Type != "far_field" {
		return badValue(in+"noise_reduction.type", "Supported values are: 'near_field' and 'far_field'.")
	}
	for _, include := range c.Include {
		if include != "item.input_audio_transcription.logprobs" {
			return badValue("session.include", "Supported values are: 'item.input_audio_transcription.logprobs'.")
		}
	}
	if v := c.TurnDetection; v != nil {
		tuned := v.Threshold != nil || v.PrefixPaddingMS != nil || v.SilenceDurationMS != nil
		switch {
		case v.Type == "server_vad" && v.Eagerness == "":
		case v.Type == "semantic_vad" && !tuned && slices.Contains([]string{"", "low", "medium", "high", "auto"}, v.Eagerness):
		default:
			return badValue(in+"turn_detection", "Invalid turn detection.")
		}
		if v.Threshold != nil && !(*v.Threshold >= 0 && *v.Threshold <= 1) {
			return badValue(in+"turn_detection.threshold", "Expected a number from 0 to 1.")
		}
		if v.silence() < 0 || v.padding() < 0 {
			return badValue(in+"turn_detection", "Expected durations from 0.")
		}
	}
	if c.Transcription == nil {
		return nil
	}
	return c.checkModel()
}

// checkModel refuses what the model does not take.
func (c emulatorConfig) checkModel() *emulatorError {
	const at = "session.audio.input.transcription."
	t := c.Transcription
	lists := t.Model == "gpt-transcribe" || t.Model == "gpt-live-transcribe"
	switch t.Model {
	case "gpt-live-transcribe", "gpt-realtime-whisper", "gpt-transcribe", "whisper-1", "gpt-4o-transcribe",
		"gpt-4o-mini-transcribe", "gpt-4o-mini-transcribe-2025-12-15", "gpt-4o-transcribe-diarize":
	case "":
		return &emulatorError{Code: "missing_required_parameter", Param: at + "model", Message: "Missing required parameter: '" + at + "model'."}
	default:
		return &emulatorError{Code: "model_not_found", Param: at + "model", Message: "The model '" + t.Model + "' does not exist or you do not have access to it."}
	}
	switch {
	case c.TurnDetection != nil && streams(t.Model):
		return badValue("session.audio.input.turn_detection", "Turn detection is not supported for this transcription model.")
	case t.Language != "" && t.Languages != nil:
		return badValue(at+"languages", "'language' and 'languages' cannot be used together.")
	case t.Languages != nil && !lists:
		return badValue(at+"languages", "Not supported for this transcription model.")
	case t.Keywords != nil && !lists:
		return badValue(at+"keywords", "Not supported for this transcription model.")
	case t.Prompt != "" && (t.Model == "gpt-realtime-whisper" || t.Model == "gpt-4o-transcribe-diarize"):
		return badValue(at+"prompt", "Not supported for this transcription model.")
	case t.Delay != "" && !streams(t.Model):
		return badValue(at+"delay", "Not supported for this transcription model.")
	}
	return nil
}

func badValue(param, message string) *emulatorError {
	return &emulatorError{Code: "invalid_value", Param: param, Message: message}
}

// strictly decodes a part of an update, refusing fields that the API does not
// know.
func strictly(param string, data []byte, into any) *emulatorError {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		return nil
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		param += "." + strings.Trim(field, `"`)
		return &emulatorError{Code: "unknown_parameter", Param: param, Message: "Unknown parameter: '" + param + "'."}
	}
	return badValue(param, "Invalid value: "+err.Error())
}
