package calibrate

import (
	"fmt"
	"math"
	"time"

	"sttbench/providers/emulator"
	"sttbench/scoring/stat"
)

// Report is the outcome of a calibration. Spreads are of microseconds, nil where
// there is nothing to spread. The JSON keys are stable.
type Report struct {
	Streams   int     `json:"streams"`
	TLS       bool    `json:"tls"`
	DurationS float64 `json:"duration_s"` // counted
	// Answers is how many forced endpoints were compared with the truth.
	Answers int `json:"answers"`
	// Lateness of all audio writes: write start − due.
	Lateness *Spread `json:"lateness_us"`
	// TTFError is reported time to final − true one. Bias is the median with its
	// sign; the quantiles are of the absolute value.
	TTFError *Spread `json:"ttf_error_us"`
	// StampError is the absolute difference of our receive stamp of an answer and
	// the emulator's stamp before it sent it.
	StampError *Spread `json:"stamp_error_us"`
	// Floor is the round trip of a small message over bare TCP to a process that
	// echoes it, from the write to the receive stamp.
	Floor *Spread `json:"floor_us"`
	// CPUPercentPerStream is of one processor, of this process.
	CPUPercentPerStream float64 `json:"cpu_percent_per_stream"`
	// StealPercent is of all processors: time that the host gave to others.
	// BusyPercent is what was used, by us and others. Nil where the system does
	// not tell.
	StealPercent *float64 `json:"steal_percent"`
	BusyPercent  *float64 `json:"busy_percent"`
	// ClientInvalid counts turns that our own lateness spoiled, Uncertain those of
	// which a busy emulator does not know when it received the force, Unmatched those
	// without a valid answer or without a counterpart. None is among Answers.
	ClientInvalid int `json:"client_invalid"`
	Uncertain     int `json:"uncertain"`
	Unmatched     int `json:"unmatched"`
	// Sessions is how many sessions were streamed to their end.
	Sessions int `json:"sessions"`
	// Stamps says whose receive stamps were used: kernel or user.
	Stamps string `json:"stamps"`
	// MaxStreams is the highest number of streams found inside the limits; only
	// set by a search for it.
	MaxStreams *int `json:"max_streams,omitempty"`
}

// Spread summarises a sample of microseconds.
type Spread struct {
	Bias *float64 `json:"bias,omitempty"`
	P50  float64  `json:"p50"`
	P99  float64  `json:"p99"`
	P999 *float64 `json:"p999,omitempty"`
	Max  *float64 `json:"max,omitempty"`
}

// Evaluate compares a run with the emulator's truth about it.
func Evaluate(r *Run, truth []emulator.Truth) *Report {
	span := Span{r.From.Mono, r.To.Mono}
	j := Join(r.Sessions, truth, span)
	length := time.Duration(span.To - span.From)
	rep := &Report{
		Streams: r.Plan.Streams, TLS: r.TLS, DurationS: round(length.Seconds(), 3),
		Answers: len(j.Answers), ClientInvalid: j.ClientInvalid, Uncertain: j.Uncertain, Unmatched: j.Unmatched,
		Sessions: len(r.Sessions), Stamps: "user",
	}
	if j.Kernel && r.FloorKernel {
		rep.Stamps = "kernel"
	}
	rep.Lateness = lateness(r, span)
	rep.TTFError, rep.StampError = errorsOf(j.Answers)
	if rep.Floor = spread(r.Floor); rep.Floor != nil {
		rep.Floor.P999, rep.Floor.Max = nil, nil
	}
	cpu := (r.To.CPU - r.From.CPU).Seconds() / length.Seconds() / float64(r.Plan.Streams)
	rep.CPUPercentPerStream = round(100*cpu, 3)
	rep.StealPercent, rep.BusyPercent = machine(r.From.Machine, r.To.Machine)
	return rep
}

func lateness(r *Run, span Span) *Spread {
	var late []time.Duration
	for _, s := range r.Sessions {
		for _, c := range s.Chunks {
			if span.holds(s.Open.T0Mono + int64(c.Due)) {
				late = append(late, c.Start-c.Due)
			}
		}
	}
	return spread(late)
}

func errorsOf(answers []Answer) (ttf, stamp *Spread) {
	if len(answers) == 0 {
		return nil, nil
	}
	signed := make([]time.Duration, len(answers))
	ttfs, stamps := make([]time.Duration, len(answers)), make([]time.Duration, len(answers))
	for i, a := range answers {
		signed[i], ttfs[i], stamps[i] = a.TTF, a.TTF.Abs(), a.Stamp.Abs()
	}
	ttf, stamp = spread(ttfs), spread(stamps)
	ttf.Bias = &spread(signed).P50
	ttf.P999, stamp.P999 = nil, nil
	return ttf, stamp
}

// spread is nil for an empty sample.
func spread(sample []time.Duration) *Spread {
	if len(sample) == 0 {
		return nil
	}
	values := make([]stat.Value, len(sample))
	worst := sample[0]
	for i, d := range sample {
		values[i].X = float64(d) / 1e3
		worst = max(worst, d)
	}
	quantile := func(p float64) float64 {
		q, err := stat.Quantile(values, p)
		if err != nil {
			panic(err) // of a sample with finite values there is one
		}
		return round(q.X, 1)
	}
	p999, most := quantile(0.999), round(float64(worst)/1e3, 1)
	return &Spread{P50: quantile(0.5), P99: quantile(0.99), P999: &p999, Max: &most}
}

// machine is the share of all processors that was stolen and used.
func machine(from, to *MachineTime) (steal, busy *float64) {
	if from == nil || to == nil || to.Total <= from.Total {
		return nil, nil
	}
	share := func(part uint64) *float64 {
		v := round(100*float64(part)/float64(to.Total-from.Total), 2)
		return &v
	}
	return share(to.Steal - from.Steal), share(to.Busy - from.Busy)
}

func round(x float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(x*unit) / unit
}

// Limits are what a calibration must keep to for its measurements to be trusted.
type Limits struct {
	LatenessP99 time.Duration
	Bias        time.Duration // of the time to final, either way
	TTFErrorP99 time.Duration
	Steal       float64 // percent above which the machine was not quiet
}

// DefaultLimits are far below what differs between providers, and above what a
// virtual machine with idle processors needs.
func DefaultLimits() Limits {
	return Limits{LatenessP99: 2 * time.Millisecond, Bias: 100 * time.Microsecond, TTFErrorP99: time.Millisecond, Steal: 0.5}
}

// Excesses says what is outside the limits; empty when nothing is.
func (l Limits) Excesses(r *Report) []string {
	var out []string
	over := func(name string, us float64, limit time.Duration) {
		if us > float64(limit)/1e3 {
			out = append(out, fmt.Sprintf("%s %.0f µs > %d µs", name, us, limit.Microseconds()))
		}
	}
	if r.Lateness != nil {
		over("lateness p99", r.Lateness.P99, l.LatenessP99)
	}
	if r.TTFError != nil {
		over("|ttf bias|", math.Abs(*r.TTFError.Bias), l.Bias)
		over("ttf error p99", r.TTFError.P99, l.TTFErrorP99)
	} else {
		out = append(out, "no answer")
	}
	if r.ClientInvalid > 0 {
		out = append(out, fmt.Sprintf("%d turns client_invalid", r.ClientInvalid))
	}
	if r.Unmatched > 0 {
		out = append(out, fmt.Sprintf("%d turns unmatched", r.Unmatched))
	}
	return out
}

// Quiet tells whether the host left this machine its processors. A machine that
// does not tell counts as quiet.
func (l Limits) Quiet(r *Report) bool { return r.StealPercent == nil || *r.StealPercent <= l.Steal }
