package openai

import (
	"flag"
	"strings"
	"testing"
	"time"

	"sttbench/providers"
	"sttbench/providers/conformance"
	"sttbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDecodeGolden(t *testing.T) {
	forced := func(t testing.TB) providers.Session { return open(t, providers.Config{Forced: true}) }
	conformance.Golden(t, *update, forced, nil)
}

// FuzzDecode holds that no event of a server breaks the session, and that what
// is decoded keeps the contract.
func FuzzDecode(f *testing.F) {
	for _, frame := range conformance.Frames(f) {
		f.Add(frame.Data, true)
		f.Add(frame.Data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, ready bool) {
		s := open(t, providers.Config{Forced: true})
		if ready {
			_, _, _ = s.Decode(time.Time{}, providers.TextFrame(`{"type":"session.updated"}`))
		}
		events, replies, err := s.Decode(time.Time{}, providers.Frame{Op: record.Text, Data: data})
		if len(events)+len(replies) > 1 || err != nil && len(events)+len(replies) > 0 {
			t.Fatalf("%d events, %d replies, %v", len(events), len(replies), err)
		}
		for _, e := range events {
			if e.Kind == "" || e.Kind == record.Ready && ready {
				t.Fatalf("unexpected event: %+v", e)
			}
			if e.Negative && !e.Closes || e.Reject != "" && e.Kind != record.Error {
				t.Fatalf("contradiction: %+v", e)
			}
			if e.AudioStart != nil && *e.AudioStart < 0 || e.AudioEnd != nil && *e.AudioEnd < 0 {
				t.Fatalf("negative position: %+v", e)
			}
			if strings.Contains(e.Cause, testKey) {
				t.Fatalf("the key is told: %+v", e)
			}
		}
	})
}
