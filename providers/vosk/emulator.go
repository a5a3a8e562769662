package vosk

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"sttbench/providers/emulator"
)

// Emulator plays the Python server (websocket/asr_server.py): lockstep, exact
// texts for reset and eof, close 1011 for any other text, 8000 Hz unless
// configured. It says the script's words as they are; the real server's are in
// lower case.
type Emulator struct{}

var _ emulator.Vendor = Emulator{}

// Accept implements [emulator.Vendor]: any path will do, and no key is asked for.
func (Emulator) Accept(*http.Request, *rand.Rand) (*emulator.Accepted, *emulator.Refusal) {
	return &emulator.Accepted{Stream: new(stream)}, nil
}

// Refuse implements [emulator.Vendor].
func (Emulator) Refuse(_ *http.Request, _ *rand.Rand, status int) *emulator.Refusal {
	return &emulator.Refusal{
		Status: status,
		Header: http.Header{"Content-Type": {"text/plain"}},
		Body:   []byte(http.StatusText(status) + "\n"),
	}
}

const (
	// serverRate is VOSK_SAMPLE_RATE's default.
	serverRate = 8000
	// serverSilence is the usual second endpoint rule of the models: silence after
	// words.
	serverSilence = 500 * time.Millisecond
	// serverLimit is the default message limit of the server's WebSocket library.
	serverLimit = 1 << 20
)

// stream is the server's side of one connection.
type stream struct {
	words        bool
	alternatives int

	rate    float64
	started bool // the recogniser exists; configurations come too late
	idle    bool // nothing was decoded since the start or the last final
	replied bool // to the message at hand
	// held is the first part of an answer that comes in two: there is one reply to
	// a message, whatever happens.
	held []emulator.Word
}

// Open implements [emulator.Stream].
func (s *stream) Open(c *emulator.Call) {
	s.words, s.rate, s.idle = true, serverRate, true
	s.hear(c)
}

func (s *stream) hear(c *emulator.Call) {
	c.Hear(emulator.Hearing{
		SampleRate:   int(s.rate),
		PartialEvery: emulator.NoPartials,
		Endpointing:  serverSilence,
		Lockstep:     true,
	})
}

// Message implements [emulator.Stream].
func (s *stream) Message(c *emulator.Call, m emulator.Message) {
	if len(m.Data) > serverLimit {
		c.Close(1009, "")
		return
	}
	if !m.Binary && strings.Contains(string(m.Data), "config") {
		if !s.configure(c, m.Data) {
			c.Close(1011, "")
		}
		return
	}
	s.started, s.replied, s.held = true, false, nil
	switch {
	case m.Binary:
		c.Audio(m.Data)
		if !s.replied {
			s.partial(c)
		}
	case string(m.Data) == `{"reset" : 1}`:
		c.Force("")
	case string(m.Data) == `{"eof" : 1}`:
		c.Finish()
	default:
		// The server hands the text to the recogniser as if it were audio.
		c.Close(1011, "")
	}
}

// configure tells whether the server survives the message. Only a new model
// makes a new recogniser of one that exists.
func (s *stream) configure(c *emulator.Call, data []byte) bool {
	var m struct {
		Config *struct {
			SampleRate   *float64 `json:"sample_rate"`
			Words        any      `json:"words"`
			Alternatives *int     `json:"max_alternatives"`
			Phrases      []string `json:"phrase_list"`
			Model        *string  `json:"model"`
		} `json:"config"`
	}
	if json.Unmarshal(data, &m) != nil || m.Config == nil {
		return false
	}
	cfg := m.Config
	if s.started && cfg.Model == nil {
		return true
	}
	if cfg.SampleRate != nil {
		const most = 1 << 20
		if !(*cfg.SampleRate >= 1 && *cfg.SampleRate <= most) {
			return false
		}
		s.rate = *cfg.SampleRate
	}
	if cfg.Words != nil { // as Python sees truth
		s.words = cfg.Words != false && cfg.Words != 0.0 && cfg.Words != ""
	}
	if cfg.Alternatives != nil {
		s.alternatives = *cfg.Alternatives
	}
	s.hear(c)
	return true
}

// Partial implements [emulator.Stream]; the stream asks by itself.
func (s *stream) Partial(*emulator.Call, emulator.Hypothesis) {}

// partial answers audio. While the recogniser has nothing to go on, the real one
// answers with the form of an empty final.
func (s *stream) partial(c *emulator.Call) {
	h := c.Hypothesis()
	if s.idle && len(h.Words) == 0 {
		s.idle = false
		c.SendText(s.empty())
		return
	}
	s.idle = false
	c.SendText(fmt.Appendf(nil, "{\n  \"partial\" : %s\n}", quote(h.Text())))
}

// Final implements [emulator.Stream].
func (s *stream) Final(c *emulator.Call, f emulator.Final) {
	if f.Cause == emulator.CauseForce && !f.Ack {
		s.held = append(s.held, f.Words...)
		return
	}
	f.Words = append(s.held, f.Words...)
	s.held, s.replied, s.idle = nil, true, true
	if len(f.Words) == 0 {
		c.SendText(s.empty())
	} else {
		c.SendText(s.result(f))
	}
	if f.Cause == emulator.CauseFinish {
		c.Close(1000, "")
	}
}

func (s *stream) empty() []byte {
	if s.alternatives > 0 {
		return []byte(`{"alternatives" : [{"text": "", "confidence" : 1.0}] }`)
	}
	return []byte(`{"text": ""}`)
}

// result writes a final as the server's printer does: keys in alphabetical
// order, blanks around colons, six decimals.
func (s *stream) result(f emulator.Final) []byte {
	if s.alternatives == 0 {
		list := ""
		if s.words {
			list = wordList(f.Words, "  ", true)
		}
		return fmt.Appendf(nil, "{\n%s  \"text\" : %s\n}", list, quote(f.Text()))
	}
	list := ""
	if s.words {
		list = wordList(f.Words, "      ", false)
	}
	return fmt.Appendf(nil, "{\n  \"alternatives\" : [{\n      \"confidence\" : %.6f,\n%s      \"text\" : %s\n    }]\n}",
		100.0, list, quote(f.Text()))
}

// wordList writes the key result with its words and a comma.
func wordList(words []emulator.Word, indent string, conf bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\"result\" : [", indent)
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("{\n")
		if conf {
			fmt.Fprintf(&b, "%s    \"conf\" : %.6f,\n", indent, 1.0)
		}
		fmt.Fprintf(&b, "%[1]s    \"end\" : %.6[2]f,\n%[1]s    \"start\" : %.6[3]f,\n%[1]s    \"word\" : %[4]s\n%[1]s  }",
			indent, w.End.Seconds(), w.Start.Seconds(), quote(w.Text))
	}
	b.WriteString("],\n")
	return b.String()
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return string(data)
}
