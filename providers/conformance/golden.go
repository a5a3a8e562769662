package conformance

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
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

// conversations is where a vendor keeps what its server says: testdata/decode/*.txt
// in its folder. A line is one of
//
//	# remark
//	< text           a received text message
//	+ text           its next line
//	binary HEX       a received binary message
//	close CODE TEXT  a received close frame
//	> something      what we send; the vendor's test knows the word
const conversations = "testdata/decode/*.txt"

// step is one line of a conversation: a received frame, or something to send.
type step struct {
	frame providers.Frame
	send  string
}

// Golden plays a vendor's conversations and compares what the dialect makes of
// them with the .golden file beside each. open opens a session; send sends what a
// line with ">" names and may be nil where there is none.
func Golden(t *testing.T, update bool, open func(testing.TB) providers.Session, send func(s providers.Session, what string) error) {
	for _, file := range files(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			got := play(t, open(t), read(t, file), send)
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			if update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (-golden +got); -update rewrites it:\n%s", golden, d)
			}
		})
	}
}

// Frames lists all frames received in a vendor's conversations, as seeds for
// fuzzing.
func Frames(t testing.TB) []providers.Frame {
	var all []providers.Frame
	for _, file := range files(t) {
		for _, s := range read(t, file) {
			if s.send == "" {
				all = append(all, s.frame)
			}
		}
	}
	return all
}

func files(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(conversations)
	if err != nil || len(all) == 0 {
		t.Fatalf("no conversations in %s: %v", conversations, err)
	}
	return all
}

func read(t testing.TB, file string) []step {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for line := range strings.Lines(string(data)) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch verb {
		case "#":
		case "<":
			steps = append(steps, step{frame: providers.TextFrame(rest)})
		case "+":
			f := &steps[len(steps)-1].frame
			f.Data = append(append(f.Data, '\n'), rest...)
		case ">":
			steps = append(steps, step{send: rest})
		case "binary":
			b, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
			steps = append(steps, step{frame: providers.BinaryFrame(b)})
		case "close":
			code, reason, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(code)
			if err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
			steps = append(steps, step{frame: providers.Frame{Op: record.CloseOp, Code: n, Data: []byte(reason)}})
		default:
			t.Fatalf("%s: %q: unknown verb", file, line)
		}
	}
	return steps
}

func play(t *testing.T, s providers.Session, steps []step, send func(providers.Session, string) error) string {
	t.Helper()
	var out bytes.Buffer
	for _, st := range steps {
		if st.send != "" {
			if err := send(s, st.send); err != nil {
				t.Fatalf("send %s: %v", st.send, err)
			}
			continue
		}
		events, replies, err := s.Decode(time.Unix(0, 0), st.frame)
		fmt.Fprintln(&out, shown(st.frame))
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
