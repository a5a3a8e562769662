package record

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

func sample() *Session {
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	kernel, end, conf := at(1400), at(990), 0.97
	return &Session{
		Open: Open{
			Session: "deepgram/lights.1", Repeat: 1, Fingerprint: "sha256:aa", Software: "test",
			T0Wall: time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC), T0Mono: 42,
			Target: Target{Name: "deepgram", Provider: "deepgram", Dialect: "1", Model: "nova-3", Endpoint: "wss://example.test/v1/listen",
				Params: map[string]string{"b": "2", "a": "1"}, Forced: true, SampleRate: 16000, Chunk: at(20), Deadline: at(10000)},
			Item: Item{Dataset: "demo", ID: "lights", Recording: "lights", Hash: "sha256:bb", Duration: at(1300),
				Reference: "turn <the> lights off", HasReference: true, Tags: []string{"short"}, Weight: 1},
		},
		Turns:   Turns{Model: "sha256:cc", Params: "threshold=0.5", List: []Turn{{Start: at(200), SE: at(1000), EOS: at(1256), SELow: at(968), SEHigh: at(1032)}}},
		Connect: Connect{TCP: at(1), Upgrade: at(2), Start: -at(3), Address: "127.0.0.1:1", Stamps: "kernel"},
		Chunks:  []Chunk{{Due: at(20), Start: at(20) + 5, Return: at(20) + 90, AudioEnd: at(20), Bytes: 640}},
		Marks:   []Mark{{Turn: 0, Forced: true, F0: at(1260), T0: at(1261), AudioEnd: at(1260)}},
		Delays:  []Delay{{Kind: DelayWrite, At: at(20), By: at(6)}},
		Client:  Client{GC: 5, CPU: 0.25, Cores: 2, Steal: &conf},
		Events: []Event{
			{User: at(10), Op: Text, Bytes: 2, Raw: "{}"},
			{User: at(900), Op: Text, Bytes: 9, RawBase64: []byte{0xff, 0xfe}, Error: "malformed"},
			{Kernel: &kernel, User: at(1401), Op: Text, Bytes: 700, Raw: `{"t":1}`, Decoded: []Decoded{{
				Kind: Final, Mode: Append, Join: JoinSpace, Text: "turn the lights off", Closes: true, Cause: "from_finalize",
				Words: []Word{{Text: "off", End: &end, Confidence: &conf}}, AudioEnd: &end}}},
		},
		Sent:  Sent{Chunks: 64, Bytes: 40960, Audio: at(1300), LateP50: 4, LateMax: 90},
		Close: Close{At: at(1500), How: Settled, Phase: PhaseStream},
	}
}

func TestGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "session.jsonl")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(golden), b.String()); d != "" {
		t.Errorf("written record (-golden +got); -update rewrites it:\n%s", d)
	}
	got, err := Read(bytes.NewReader(golden))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample(), got); d != "" {
		t.Errorf("read record (-want +got):\n%s", d)
	}
}

func TestReadErrors(t *testing.T) {
	const open = `{"type":"open","version":1}` + "\n"
	const turns = `{"type":"turns","turns":[{"start_ns":0,"se_ns":10,"eos_ns":20}]}` + "\n"
	const end = `{"type":"close","how":"settled"}` + "\n"
	cases := []struct{ name, in, want string }{
		{"empty", "", "record line 1: record is empty"},
		{"no json", "hello\n", "record line 1: invalid character 'h' looking for beginning of value"},
		{"no open line", end, `record line 1: type "close": the open line must come first, and once`},
		{"two open lines", open + open, `record line 2: type "open": the open line must come first, and once`},
		{"newer version", `{"type":"open","version":2}`, "record line 1: record version 2: this sttbench reads versions 1 to 1"},
		{"unknown line", open + `{"type":"chunck"}`, `record line 2: unknown line type "chunck"`},
		{"unknown key", open + `{"type":"mark","turns":1}`, `record line 2: json: unknown field "turns"`},
		{"line after close", open + end + end, "record line 3: line after the close line"},
		{"mark without turn", open + `{"type":"mark","turn":0}` + "\n" + end, "record: mark 0 names turn 0 of 0"},
		{"t0 before f0", open + turns + `{"type":"mark","turn":0,"f0_ns":5,"t0_ns":4}` + "\n" + end, "record: mark 0: t0 lies before f0"},
		{"unknown kind", open + `{"type":"event","op":"text","decoded":[{"kind":"finall"}]}` + "\n" + end,
			`record: event kind "finall": want one of ready, partial, final, ack, end_of_turn, speech_started, reopen, warning, error, done`},
		{"negative duration", `{"type":"open","version":1,"item":{"id":"a","duration_ns":-5}}` + "\n" + end, "record: item a: negative duration or weight"},
		{"turn backwards", open + `{"type":"turns","turns":[{"start_ns":9,"se_ns":1,"eos_ns":20}]}` + "\n" + end, "record: turn 0: want start ≤ se ≤ eos"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestTruncatedRecordKeepsWhatIsThere(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b.Bytes(), []byte("\n"))
	s, err := Read(bytes.NewReader(bytes.Join(lines[:6], nil)))
	if !errors.Is(err, ErrTruncated) || s == nil || len(s.Turns.List) != 1 {
		t.Errorf("got %+v, %v; want the part with ErrTruncated", s, err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"type":"open","version":1}` + "\n" + `{"type":"close"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		var once, twice bytes.Buffer
		if err := Write(&once, s); err != nil {
			return // times beyond year 9999 cannot be written
		}
		again, err := Read(bytes.NewReader(once.Bytes()))
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, once.Bytes())
		}
		if err := Write(&twice, again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("writing twice differs:\n%s\n%s", once.Bytes(), twice.Bytes())
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	s := sample()
	var buf bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if err := Write(&buf, s); err != nil {
			b.Fatal(err)
		}
	}
}
