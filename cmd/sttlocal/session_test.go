package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestMessages(t *testing.T) {
	type step struct {
		send    string // text; "tone" and "silence" stand for 1.5 s of audio
		reply   string // exact, or the start when it ends in "…"
		done    bool
		problem string // in the error
	}
	const (
		noPartial = "{\n  \"partial\" : \"\"\n}"
		partial   = "{\n  \"partial\" : \"word\"\n}"
		final     = "{\n  \"result\" : [{\n      \"conf\" : 1.000000,\n…"
	)
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"configuration has no reply", []step{
			{send: `{"config":{"sample_rate":16000,"words":1,"max_alternatives":0}}`},
			{send: "tone", reply: partial},
		}},
		{"reset, twice", []step{
			{send: "tone", reply: partial},
			{send: resetCommand, reply: final},
			{send: resetCommand, reply: emptyFinal},
			{send: "tone", reply: partial},
		}},
		{"eof", []step{
			{send: "tone", reply: partial},
			{send: eofCommand, reply: final, done: true},
		}},
		{"eof at once", []step{{send: eofCommand, reply: emptyFinal, done: true}}},
		{"silence", []step{
			{send: "silence", reply: noPartial},
			{send: resetCommand, reply: emptyFinal},
		}},
		{"natural end", []step{
			{send: "tone", reply: partial},
			{send: "silence", reply: final},
			{send: "silence", reply: noPartial},
		}},
		{"no words, as a number", []step{
			{send: `{"config":{"words":0}}`},
			{send: "tone", reply: partial},
			{send: resetCommand, reply: "{\n  \"text\" : \"word\"\n}"},
		}},
		{"no words, as a boolean", []step{
			{send: `{"config":{"words":false}}`},
			{send: "tone", reply: partial},
			{send: resetCommand, reply: "{\n  \"text\" : \"word\"\n}"},
		}},
		{"late configuration is ignored", []step{
			{send: "tone", reply: partial},
			{send: `{"config":{"words":0,"sample_rate":8000}}`},
			{send: resetCommand, reply: final},
		}},
		{"reset without spaces", []step{{send: `{"reset":1}`, problem: "unknown text message"}}},
		{"eof without spaces", []step{{send: `{"eof":1}`, problem: "unknown text message"}}},
		{"garbage", []step{{send: "hello", problem: "unknown text message"}}},
		{"empty text", []step{{send: "", problem: "unknown text message"}}},
		{"not JSON", []step{{send: `{"config":`, problem: "the configuration is not valid"}}},
		{"config elsewhere", []step{{send: `{"a":"config"}`, problem: "the configuration is not valid"}}},
		{"wrong rate", []step{{send: `{"config":{"sample_rate":8000}}`, problem: "sample_rate 8000 is not supported: the model hears 16000"}}},
		{"alternatives", []step{{send: `{"config":{"max_alternatives":3}}`, problem: "max_alternatives is not supported"}}},
		{"phrase list", []step{{send: `{"config":{"phrase_list":["yes"]}}`, problem: "phrase_list is not supported"}}},
		{"model", []step{{send: `{"config":{"model":"/x"}}`, problem: "model is not supported"}}},
		{"words as text", []step{{send: `{"config":{"words":"yes"}}`, problem: "words is neither"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{rec: newRecognizer(&fakeDecoder{})}
			for _, step := range tt.steps {
				kind, data := websocket.TextMessage, []byte(step.send)
				switch step.send {
				case "tone":
					kind, data = websocket.BinaryMessage, pcm(tone(1500*time.Millisecond))
				case "silence":
					kind, data = websocket.BinaryMessage, pcm(silence(1500*time.Millisecond))
				}
				reply, done, err := s.message(t.Context(), kind, data)
				if step.problem != "" {
					if err == nil || !strings.Contains(err.Error(), step.problem) {
						t.Errorf("%s: error %v, want %q", step.send, err, step.problem)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", step.send, err)
				}
				start, isStart := strings.CutSuffix(step.reply, "…")
				if reply != step.reply && !(isStart && strings.HasPrefix(reply, start)) {
					t.Errorf("%s: reply %q, want %q", step.send, reply, step.reply)
				}
				if done != step.done {
					t.Errorf("%s: done %v, want %v", step.send, done, step.done)
				}
			}
		})
	}
}

func TestOddAudio(t *testing.T) {
	s := &session{rec: newRecognizer(&fakeDecoder{})}
	for _, data := range [][]byte{nil, {1}, {1, 2, 3}} {
		reply, _, err := s.message(t.Context(), websocket.BinaryMessage, data)
		if err != nil || reply != partialReply("") {
			t.Errorf("%d bytes: %q, %v, want an empty partial", len(data), reply, err)
		}
	}
}

func TestDecoderFailureIsAnError(t *testing.T) {
	broken := errors.New("broken")
	s := &session{rec: newRecognizer(&fakeDecoder{fail: broken})}
	if _, _, err := s.message(t.Context(), websocket.BinaryMessage, pcm(tone(time.Second))); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// FuzzMessage checks that no message breaks a session and that each one has
// exactly one reply, unless it is a configuration or an error.
func FuzzMessage(f *testing.F) {
	f.Add(false, []byte(resetCommand))
	f.Add(false, []byte(eofCommand))
	f.Add(false, []byte(`{"config":{"sample_rate":16000,"words":true}}`))
	f.Add(false, []byte(`{"config":{"words":[1],"phrase_list":["a"]}}`))
	f.Add(true, pcm(tone(50*time.Millisecond)))
	f.Add(true, []byte{255})
	f.Fuzz(func(t *testing.T, binary bool, data []byte) {
		kind := websocket.TextMessage
		if binary {
			kind = websocket.BinaryMessage
		}
		s := &session{rec: newRecognizer(&fakeDecoder{})}
		for range 2 {
			reply, done, err := s.message(t.Context(), kind, data)
			isConfig := !binary && strings.Contains(string(data), "config")
			if err == nil && (reply == "") != isConfig {
				t.Fatalf("reply %q", reply)
			}
			if err != nil && reply != "" {
				t.Fatalf("both reply %q and error %v", reply, err)
			}
			if done && string(data) != eofCommand {
				t.Fatal("done without eof")
			}
		}
	})
}
