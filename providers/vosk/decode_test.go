package vosk

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestDecodeGolden plays the conversations in testdata/decode. A line starting
// with ">" is something that we send, one or more lines starting with "<" are a
// received text, "binary" and "close" other received frames.
func TestDecodeGolden(t *testing.T) {
	scripts, err := filepath.Glob("testdata/decode/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, open(t, providers.Config{Forced: true}), string(text))
			golden(t, strings.TrimSuffix(script, ".txt")+".golden", got)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func play(t *testing.T, s providers.Session, script string) string {
	t.Helper()
	var out bytes.Buffer
	receive := func(f providers.Frame) {
		events, replies, err := s.Decode(time.Time{}, f)
		fmt.Fprintf(&out, "%s\n", shown(f))
		for _, e := range events {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "\t%s\n", line)
		}
		for _, r := range replies {
			fmt.Fprintf(&out, "\tsend %s\n", shown(r))
		}
		if err != nil {
			fmt.Fprintf(&out, "\terror: %v\n", err)
		}
	}
	var lines []string
	flush := func() {
		if lines != nil {
			receive(providers.TextFrame(strings.Join(lines, "\n")))
		}
		lines = nil
	}
	for line := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		// A message starts where a brace opens at the line's beginning.
		if verb != "<" || rest != "" && rest[0] != ' ' && rest[0] != '}' {
			flush()
		}
		switch verb {
		case "#":
		case "<":
			lines = append(lines, rest)
		case ">":
			send(t, s, rest)
		case "binary":
			data, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatal(err)
			}
			receive(providers.BinaryFrame(data))
		case "close":
			code, reason, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(code)
			if err != nil {
				t.Fatal(err)
			}
			receive(providers.Frame{Op: record.CloseOp, Code: n, Data: []byte(reason)})
		default:
			t.Fatalf("script line %q", line)
		}
	}
	flush()
	return out.String()
}

func shown(f providers.Frame) string {
	switch f.Op {
	case record.Text:
		return strings.ReplaceAll(string(f.Data), "\n", " ")
	case record.CloseOp:
		return strings.TrimSpace(fmt.Sprintf("close %d %s", f.Code, f.Data))
	}
	return fmt.Sprintf("%s %x", f.Op, f.Data)
}

func send(t *testing.T, s providers.Session, what string) {
	t.Helper()
	var err error
	switch what {
	case "audio":
		_, err = s.Audio(time.Time{}, make([]byte, 640), 0)
	case "reset":
		_, err = s.Turn(time.Time{}, providers.End, providers.Span{})
	case "eof":
		s.Finish(time.Time{})
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		t.Fatalf("send %q: %v", what, err)
	}
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
	scripts, _ := filepath.Glob("testdata/decode/*.txt")
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if reply, ok := strings.CutPrefix(line, "< "); ok {
				f.Add([]byte(reply), true)
			}
		}
	}
	f.Add([]byte(`{"result":[{"conf":1,"end":0.9,"start":0.3,"word":"turn"}],"text":"turn"}`), false)
	f.Fuzz(func(t *testing.T, data []byte, reset bool) {
		s := open(t, providers.Config{Forced: true})
		send(t, s, map[bool]string{true: "reset", false: "audio"}[reset])
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
