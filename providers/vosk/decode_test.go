package vosk

import (
	"errors"
	"flag"
	"sync"
	"testing"
	"time"

	"sttbench/providers"
	"sttbench/providers/conformance"
	"sttbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDecodeGolden(t *testing.T) {
	forced := func(t testing.TB) providers.Session { return open(t, providers.Config{Forced: true}) }
	conformance.Golden(t, *update, forced, send)
}

// send sends what a line of a conversation names.
func send(s providers.Session, what string) error {
	switch what {
	case "audio":
		_, err := s.Audio(time.Time{}, make([]byte, 640), 0)
		return err
	case "reset":
		_, err := s.Turn(time.Time{}, providers.End, providers.Span{})
		return err
	case "eof":
		s.Finish(time.Time{})
		return nil
	}
	return errors.New("unknown")
}

// TestLedgerRace holds the law of the count while both halves of a session run
// at once: the n-th reply answers the n-th message, whatever is in flight.
func TestLedgerRace(t *testing.T) {
	s := open(t, providers.Config{Forced: true})
	const messages = 5000
	isReset := func(n int) bool { return n%7 == 3 || n%7 == 4 }
	sent := make(chan int, 64) // replies may lag behind by that much
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(sent)
		for n := range messages {
			if isReset(n) {
				_, _ = s.Turn(time.Time{}, providers.End, providers.Span{})
			} else {
				_, _ = s.Audio(time.Time{}, []byte{0, 0}, 0)
			}
			sent <- n
		}
	})
	for n := range sent {
		events, _, err := s.Decode(time.Time{}, providers.TextFrame(`{"text" : "w"}`))
		if err != nil || len(events) != 1 || events[0].Closes != isReset(n) {
			t.Errorf("reply %d: %+v, %v; want closes = %v", n, events, err, isReset(n))
			break
		}
	}
	for range sent { // let the sender end after a failure
	}
	wg.Wait()
}

// FuzzDecode holds that no answer of a server breaks the session, and that what
// is decoded keeps the contract.
func FuzzDecode(f *testing.F) {
	for _, frame := range conformance.Frames(f) {
		f.Add(frame.Data, true)
	}
	f.Add([]byte(`{"result":[{"conf":1,"end":0.9,"start":0.3,"word":"turn"}],"text":"turn"}`), false)
	f.Fuzz(func(t *testing.T, data []byte, reset bool) {
		s := open(t, providers.Config{Forced: true})
		if err := send(s, map[bool]string{true: "reset", false: "audio"}[reset]); err != nil {
			t.Fatal(err)
		}
		events, replies, err := s.Decode(time.Time{}, providers.Frame{Op: record.Text, Data: data})
		if len(replies) != 0 || len(events) > 1 || err != nil && len(events) != 0 {
			t.Fatalf("%d events, %d replies, %v", len(events), len(replies), err)
		}
		if reset && err == nil && (len(events) == 0 || !events[0].Closes) {
			t.Fatalf("the reset's reply does not close: %+v", events)
		}
		for _, e := range events {
			if e.Kind == record.Final && !e.TextBearing() {
				t.Fatalf("final without text: %+v", e)
			}
			if !reset && e.Closes {
				t.Fatalf("a reply to audio closes: %+v", e)
			}
			for _, w := range e.Words {
				if w.Start != nil && *w.Start < 0 || w.End != nil && *w.End < 0 {
					t.Fatalf("negative word time: %+v", w)
				}
			}
		}
	})
}
