package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gorilla/websocket"
)

// The two commands of the protocol. The Vosk server compares the whole text,
// so a different spacing is an error there, and it is one here.
const (
	resetCommand = `{"reset" : 1}`
	eofCommand   = `{"eof" : 1}`
)

// session is the protocol state of one connection.
//
// It follows asr_server.py of vosk-server: a configuration message has no
// reply, every other message has exactly one, and a message that the server
// does not understand ends the connection with close code 1011. It is stricter
// where following would mean to recognise something else than was asked for:
// another sample rate, alternatives, a phrase list and another model are
// refused. Without a configuration audio is taken to be 16 kHz.
type session struct {
	rec       *recognizer
	started   bool // a message other than a configuration came
	hideWords bool
}

// message handles one message. No reply is "". After done the server closes
// the connection normally; after an error with close code 1011, and the error
// is the reason that the client sees.
func (s *session) message(ctx context.Context, kind int, data []byte) (reply string, done bool, err error) {
	if kind == websocket.BinaryMessage {
		s.started = true
		reply, err = s.audio(ctx, data)
		return reply, false, err
	}
	text := string(data)
	if strings.Contains(text, "config") {
		return "", false, s.configure(data)
	}
	s.started = true
	switch text {
	case resetCommand, eofCommand:
		words, err := s.rec.finish()
		return finalReply(words, !s.hideWords), text == eofCommand, err
	}
	return "", false, fmt.Errorf("unknown text message: %s and %s are known, with these spaces", resetCommand, eofCommand)
}

// audio handles 16-bit little-endian mono samples. Half a sample at the end is
// ignored, as it is by Vosk.
func (s *session) audio(ctx context.Context, data []byte) (string, error) {
	samples := make([]int16, len(data)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	words, ended, err := s.rec.accept(ctx, samples)
	if err != nil {
		return "", err
	}
	if ended {
		return finalReply(words, !s.hideWords), nil
	}
	return partialReply(s.rec.hypothesis()), nil
}

// configure handles a configuration message. It has no effect once audio or a
// command came, because the Vosk server has made its recogniser by then.
func (s *session) configure(data []byte) error {
	var m struct {
		Config *struct {
			SampleRate      float64  `json:"sample_rate"`
			Words           any      `json:"words"`
			MaxAlternatives float64  `json:"max_alternatives"`
			PhraseList      []string `json:"phrase_list"`
			Model           string   `json:"model"`
		} `json:"config"`
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Config == nil {
		return errors.New("the configuration is not valid")
	}
	c := m.Config
	if s.started {
		return nil
	}
	switch {
	case c.SampleRate != 0 && c.SampleRate != sampleRate:
		return fmt.Errorf("sample_rate %v is not supported: the model hears %d", c.SampleRate, sampleRate)
	case c.MaxAlternatives != 0:
		return errors.New("max_alternatives is not supported")
	case len(c.PhraseList) != 0:
		return errors.New("phrase_list is not supported")
	case c.Model != "":
		return errors.New("model is not supported: the server has one")
	}
	switch w := c.Words.(type) {
	case nil:
	case bool:
		s.hideWords = !w
	case float64:
		s.hideWords = w == 0
	default:
		return errors.New("words is neither a number nor a boolean")
	}
	return nil
}
