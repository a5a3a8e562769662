package calibrate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/record"
)

func TestEvaluate(t *testing.T) {
	const t0 = 1_000_000_000
	s := heard(t0, [2]time.Duration{100 * ms, 60 * ms}, [2]time.Duration{200 * ms, 70 * ms}, [2]time.Duration{300 * ms, 50 * ms})
	for i, late := range []time.Duration{5 * ms, 1 * us, 2 * us, 30 * us} { // the first is due too early to count
		due := time.Duration(i) * 100 * ms
		s.Chunks = append(s.Chunks, record.Chunk{Due: due, Start: due + late, Return: due + late + 20*us})
	}
	at := func(d time.Duration) int64 { return t0 + int64(d) }
	// Errors of the times to final: −30, +10 and +20 µs.
	truth := told(1,
		[2]int64{at(100*ms + 10*us), at(160*ms + 40*us)},
		[2]int64{at(200*ms + 10*us), at(270 * ms)},
		[2]int64{at(300*ms + 20*us), at(350 * ms)})
	run := &Run{
		Plan: Plan{Streams: 1, Duration: time.Second}, Sessions: []*record.Session{s},
		From:  Sample{Mono: at(50 * ms), CPU: time.Second, Machine: &MachineTime{Total: 1000, Busy: 100, Steal: 1}},
		To:    Sample{Mono: at(550 * ms), CPU: time.Second + 25*ms, Machine: &MachineTime{Total: 1100, Busy: 140, Steal: 3}},
		Floor: []time.Duration{60 * us, 80 * us}, FloorKernel: true,
	}
	const want = `{"streams":1,"tls":false,"duration_s":0.5,"answers":3,` +
		`"lateness_us":{"p50":2,"p99":29.4,"p999":29.9,"max":30},` +
		`"ttf_error_us":{"bias":10,"p50":20,"p99":29.8,"max":30},` +
		`"stamp_error_us":{"p50":20,"p99":20,"max":20},` +
		`"floor_us":{"p50":70,"p99":79.8},` +
		`"cpu_percent_per_stream":5,"steal_percent":2,"busy_percent":40,"client_invalid":0,"uncertain":0,"unmatched":0,"sessions":1,"stamps":"kernel"}`
	got, err := json.Marshal(Evaluate(run, truth))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEvaluateNothing(t *testing.T) {
	run := &Run{Plan: Plan{Streams: 2, Duration: time.Second}, From: Sample{Mono: 1}, To: Sample{Mono: 1_000_000_001}}
	got, err := json.Marshal(Evaluate(run, nil))
	const want = `{"streams":2,"tls":false,"duration_s":1,"answers":0,"lateness_us":null,"ttf_error_us":null,"stamp_error_us":null,"floor_us":null,` +
		`"cpu_percent_per_stream":0,"steal_percent":null,"busy_percent":null,"client_invalid":0,"uncertain":0,"unmatched":0,"sessions":0,"stamps":"user"}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestLimits(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	report := func(late, bias, ttf float64) *Report {
		return &Report{Lateness: &Spread{P99: late}, TTFError: &Spread{Bias: &bias, P99: ttf}}
	}
	tests := map[string]struct {
		report *Report
		want   string
	}{
		"all at the limit": {report(2000, -100, 1000), ""},
		"late":             {report(2001, 0, 0), "lateness p99 2001 µs > 2000 µs"},
		"biased":           {report(0, -101, 0), "|ttf bias| 101 µs > 100 µs"},
		"scattered":        {report(0, 0, 1001), "ttf error p99 1001 µs > 1000 µs"},
		"no answer":        {&Report{}, "no answer"},
		"spoiled":          {&Report{Lateness: &Spread{}, TTFError: &Spread{Bias: num(0)}, ClientInvalid: 2}, "2 turns client_invalid"},
		"unmatched":        {&Report{Lateness: &Spread{}, TTFError: &Spread{Bias: num(0)}, Unmatched: 3}, "3 turns unmatched"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(DefaultLimits().Excesses(tt.report), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for steal, quiet := range map[*float64]bool{nil: true, num(0.5): true, num(0.6): false} {
		if got := DefaultLimits().Quiet(&Report{StealPercent: steal}); got != quiet {
			t.Errorf("steal %v: quiet is %v", steal, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	tests := map[string]struct {
		text string
		want *MachineTime
	}{
		"Linux":     {"cpu  10 1 5 80 2 3 4 7 9 9\ncpu0 1 1 1 1\n", &MachineTime{Total: 112, Busy: 23, Steal: 7}},
		"no guests": {"cpu 10 1 5 80 2 3 4 7", &MachineTime{Total: 112, Busy: 23, Steal: 7}},
		"no steal":  {"cpu 10 1 5 80 2 3 4", nil},
		"no number": {"cpu 10 1 5 80 2 3 4 x", nil},
		"empty":     {"", nil},
		"other":     {"mem 1 2 3 4 5 6 7 8\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parseStat([]byte(tt.text))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
