package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/endpoint"
	"sttbench/runs"
	"sttbench/scoring/stat"
	"sttbench/scoring/wer"
)

var update = flag.Bool("update", false, "rewrite golden files")

func q(x float64, censored bool) *runs.Quantile {
	return &runs.Quantile{Value: stat.Value{X: x, Censored: censored}, Need: 6}
}

func between(x, lo, hi float64) *runs.Quantile {
	return &runs.Quantile{Value: stat.Value{X: x}, Lo: &stat.Value{X: lo}, Hi: &stat.Value{X: hi, Censored: hi > 5000}}
}

func f(x float64) *float64 { return &x }

// aggregate has a good target, one that loses answers, and one that refuses.
func aggregate() *runs.Aggregate {
	return &runs.Aggregate{
		Name: "bench", Profile: "plain@1+0123456789ab", VAD: "threshold=0.5 min_silence=200ms min_speech=250ms", Turns: "last",
		Harness:  &runs.Harness{At: time.Date(2026, 12, 1, 1, 2, 3, 0, time.UTC), Streams: 50, TTFBias: 21.4, TTFP99: 180, LateP99: 300},
		Datasets: []runs.DatasetSum{{Name: "calls", Items: 40, Audio: 125_400}},
		Targets: []runs.TargetAggregate{
			{Name: "good", Provider: "deepgram", Forced: true, Stamps: "user", Sessions: 40, Scheduled: 40,
				Classes: map[endpoint.Class]int{endpoint.OK: 37, endpoint.EarlyFinal: 3}, Acks: map[endpoint.Ack]int{endpoint.AckText: 38, endpoint.AckNone: 2},
				TTF:  runs.Latency{N: 40, P50: between(150.4, 148.6, 153.2), P95: q(220.2, false)},
				TTFP: runs.Latency{N: 40, P50: q(91.1, false)}, Wait: runs.Latency{N: 40, P50: q(150.4, false)},
				FromSE: runs.Latency{N: 40, P50: q(415.1, false)}, Hangover: runs.Latency{N: 40, P50: q(256, false)}, LateMax: 3.61,
				Final: runs.Accuracy{Counts: wer.Counts{RefWords: 400, Hits: 390, Sub: 10}, WER: f(0.025), Lo: f(0.01), Hi: f(0.041)}, TailError: f(0.05)},
			{Name: "lossy-natural", Provider: "openai", Stamps: "kernel", Sessions: 40, NotRun: 1, Scheduled: 40,
				Classes: map[endpoint.Class]int{endpoint.OK: 20, endpoint.NoAnswer: 19, endpoint.Cancelled: 1}, Acks: map[endpoint.Ack]int{},
				TTF:     runs.Latency{N: 39, Censored: 19, P50: between(900, 800, 10_000), P95: q(10_000, true)},
				Final:   runs.Accuracy{Counts: wer.Counts{RefWords: 390, Hits: 200, Del: 190}, WER: f(0.4872)},
				Reasons: map[string]int{"cancelled: not run": 1}},
			{Name: "refused", Provider: "deepgram", Forced: true, Sessions: 3, Scheduled: 3,
				Classes: map[endpoint.Class]int{endpoint.Rejected: 3}, Acks: map[endpoint.Ack]int{},
				Reasons: map[string]int{"rejected: auth: Invalid credentials.": 2, "rejected: rate: a": 1, "x: b": 1, "x: c": 1, "x: d": 1, "x: e": 1}},
		},
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, aggregate()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "report.txt")
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
		t.Errorf("report (-golden +got); -update rewrites it:\n%s", d)
	}
}

func TestJSONIsTheAggregate(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, aggregate()); err != nil {
		t.Fatal(err)
	}
	var back runs.Aggregate
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(aggregate(), &back); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
