package openai

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// TestDecodeGolden decodes the frames in testdata/decode: "<" is a received
// text, "binary" and "close" are other frames.
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
			golden(t, strings.TrimSuffix(script, ".txt")+".golden", play(t, open(t, providers.Config{Forced: true}), string(text)))
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
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
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		verb, rest, _ := strings.Cut(line, " ")
		var f providers.Frame
		switch verb {
		case "#":
			continue
		case "<":
			f = providers.TextFrame(rest)
		case "binary":
			data, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatal(err)
			}
			f = providers.BinaryFrame(data)
		case "close":
			code, reason, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(code)
			if err != nil {
				t.Fatal(err)
			}
			f = providers.Frame{Op: record.CloseOp, Code: n, Data: []byte(reason)}
		default:
			t.Fatalf("script line %q", line)
		}
		events, replies, err := s.Decode(time.Time{}, f)
		fmt.Fprintf(&out, "%s\n", line)
		for _, e := range events {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "\t%s\n", data)
		}
		for _, r := range replies {
			fmt.Fprintf(&out, "\tsend %s\n", r.Data)
		}
		if err != nil {
			fmt.Fprintf(&out, "\terror: %v\n", err)
		}
	}
	return out.String()
}

// FuzzDecode holds that no event of a server breaks the session, and that what
// is decoded keeps the contract.
func FuzzDecode(f *testing.F) {
	scripts, _ := filepath.Glob("testdata/decode/*.txt")
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if event, ok := strings.CutPrefix(line, "< "); ok {
				f.Add([]byte(event), true)
				f.Add([]byte(event), false)
			}
		}
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
