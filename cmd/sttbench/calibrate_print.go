package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sttbench/calibrate"
	"sttbench/scoring/stat"
)

// streams names what is measured.
func streams(n int, secure bool) string {
	transport := "plain sockets"
	if secure {
		transport = "TLS"
	}
	if n == 1 {
		return "1 stream over " + transport
	}
	return fmt.Sprintf("%d streams over %s", n, transport)
}

// judgement is one line about a report.
func judgement(l calibrate.Limits, r *calibrate.Report) string {
	text := "inside the limits"
	if over := l.Excesses(r); len(over) > 0 {
		text = "outside the limits: " + strings.Join(over, ", ")
	}
	if !l.Quiet(r) {
		text += fmt.Sprintf(" (the machine was not quiet: steal %.1f %%)", *r.StealPercent)
	}
	if r.BusyPercent != nil && *r.BusyPercent > saturated {
		text += fmt.Sprintf(" (the processors were %.0f %% busy, with us and others)", *r.BusyPercent)
	}
	return text
}

// saturated is the use of the processors, in percent, at which threads wait for
// each other.
const saturated = 90

// printCalibration prints a report for people.
func printCalibration(w io.Writer, r *calibrate.Report) error {
	limits := calibrate.DefaultLimits()
	var b bytes.Buffer
	if r.MaxStreams != nil {
		fmt.Fprintf(&b, "highest number of streams inside the limits: %d\n\n", *r.MaxStreams)
	}
	fmt.Fprintf(&b, "%s, %.1f s counted, %d answers, %s stamps\n\n", streams(r.Streams, r.TLS), r.DurationS, r.Answers, r.Stamps)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "µs\tbias\tp50\tp99\tp99.9\tmax\t  limit\n")
	row := func(name string, s *calibrate.Spread, limit string) {
		fmt.Fprintf(t, "%s\t", name)
		if s == nil {
			s = &calibrate.Spread{}
			fmt.Fprintf(t, "–\t–\t–\t–\t–\t  %s\n", limit)
			return
		}
		for _, v := range []*float64{s.Bias, &s.P50, &s.P99, s.P999, s.Max} {
			if v == nil {
				fmt.Fprint(t, "\t")
				continue
			}
			fmt.Fprintf(t, "%.1f\t", *v)
		}
		fmt.Fprintf(t, "  %s\n", limit)
	}
	row("lateness", r.Lateness, fmt.Sprintf("p99 ≤ %d", limits.LatenessP99.Microseconds()))
	row("ttf error", r.TTFError, fmt.Sprintf("|bias| ≤ %d, p99 ≤ %d", limits.Bias.Microseconds(), limits.TTFErrorP99.Microseconds()))
	row("stamp error", r.StampError, "")
	row("floor", r.Floor, "")
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\ncpu %.2f %% of a processor per stream", r.CPUPercentPerStream)
	if r.StealPercent != nil {
		fmt.Fprintf(&b, "; machine %.0f %% busy, steal %.2f %%", *r.BusyPercent, *r.StealPercent)
	}
	fmt.Fprintf(&b, "\nclient_invalid %d, uncertain %d, unmatched %d\n", r.ClientInvalid, r.Uncertain, r.Unmatched)
	if need := stat.MinN(0.99, 0.95); r.Answers < need {
		fmt.Fprintf(&b, "fewer answers than a p99 needs (%d): take a longer --duration\n", need)
	}
	fmt.Fprintf(&b, "%s\n", judgement(limits, r))
	_, err := w.Write(b.Bytes())
	return err
}
