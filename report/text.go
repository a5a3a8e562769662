package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sttbench/endpoint"
	"sttbench/runs"
	"sttbench/scoring/stat"
)

// JSON writes the aggregate itself, as aggregate.json has it.
func JSON(w io.Writer, a *runs.Aggregate) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(a)
}

// Text writes the report for a terminal: plain characters, no colour, aligned
// columns.
func Text(w io.Writer, a *runs.Aggregate) error {
	var b strings.Builder
	head(&b, a)
	b.WriteString("\n")
	results(&b, a)
	b.WriteString("\n")
	classes(&b, a)
	reasons(&b, a)
	b.WriteString("\n")
	harness(&b, a)
	_, err := io.WriteString(w, b.String())
	return err
}

// head answers the three first questions: what was measured, what was not, how
// uncertain is it.
func head(b *strings.Builder, a *runs.Aggregate) {
	var sets []string
	for _, d := range a.Datasets {
		sets = append(sets, fmt.Sprintf("%d items of %s (%s of audio)", d.Items, d.Name, seconds(d.Audio)))
	}
	var scheduled, failed, notRun int
	var fewest, largest int
	for i, t := range a.Targets {
		scheduled += t.Scheduled
		notRun += t.NotRun
		for c, n := range t.Classes {
			if !c.Measured() && c != endpoint.NoSpeech {
				failed += n
			}
		}
		if i == 0 || t.TTF.N < fewest {
			fewest = t.TTF.N
		}
		largest = max(largest, t.TTF.N)
	}
	fmt.Fprintf(b, "%s: %s\n  at %s, %s scheduled (%s)\n", a.Name, strings.Join(sets, ", "),
		count(len(a.Targets), "target"), count(scheduled, "turn"), turnsInWords(a.Turns))
	if failed == 0 {
		b.WriteString("not measured: nothing; every turn has an answer\n")
	} else {
		fmt.Fprintf(b, "not measured: %s without a valid answer", count(failed, "turn"))
		if notRun > 0 {
			fmt.Fprintf(b, ", %s not run", count(notRun, "session"))
		}
		b.WriteString("; see the classes below\n")
	}
	fmt.Fprintf(b, "uncertainty: %s latencies per target; [brackets] are 95 %% intervals,\n"+
		"  where the sample can carry one\n", span(fewest, largest))
}

func turnsInWords(turns string) string {
	if turns == "every" {
		return "each turn of an item"
	}
	return "the last turn of each item"
}

// results are two tables that fit a narrow terminal: how fast, how right.
func results(b *strings.Builder, a *runs.Aggregate) {
	t := newTable()
	t.row("latency, ms", "end", "n", "TTF p50", "", "p95", "TTFP", "ack", "from SE")
	for _, g := range a.Targets {
		mode := "natural"
		if g.Forced {
			mode = "forced"
		}
		t.row(g.Name, mode, fmt.Sprint(g.TTF.N), quantile(g.TTF.P50), interval(g.TTF.P50), large(g.TTF.P95, g.TTF.N),
			quantile(g.TTFP.P50), quantile(g.Ack.P50), quantile(g.FromSE.P50))
	}
	t.print(b)
	b.WriteString("TTF: last final after the turn's end - forced endpoint sent (natural: turn's\n" +
		"end known). TTFP: first text. ack: closing event. from SE: what the user waits\n" +
		"after the last word, local hangover included. Medians but for p95.\n\n")

	t = newTable()
	t.row("accuracy", "no ack", "WER %", "", "first text WER %", "tail %")
	for _, g := range a.Targets {
		noAck := "-"
		if g.Forced {
			noAck = percent(g.Acks[endpoint.AckNone], g.Acks)
		}
		t.row(g.Name, noAck, rate(g.Final.WER), rates(g.Final.Lo, g.Final.Hi), rate(g.Partial.WER), rate(g.TailError))
	}
	t.print(b)
	fmt.Fprintf(b, "no ack: forced endpoints without a closing event. tail: missed of the last 3\n"+
		"words. WER: profile %s.\n", a.Profile)
}

// classes shows where every scheduled turn went.
func classes(b *strings.Builder, a *runs.Aggregate) {
	var used []endpoint.Class
	for _, c := range endpoint.Classes() {
		if slices.ContainsFunc(a.Targets, func(t runs.TargetAggregate) bool { return t.Classes[c] > 0 }) {
			used = append(used, c)
		}
	}
	t := newTable()
	cells := []string{"classes"}
	for _, c := range used {
		cells = append(cells, string(c))
	}
	t.row(append(cells, "sum")...)
	for _, g := range a.Targets {
		cells := []string{g.Name}
		for _, c := range used {
			cells = append(cells, fmt.Sprint(g.Classes[c]))
		}
		t.row(append(cells, fmt.Sprint(g.Scheduled))...)
	}
	t.print(b)
}

// reasons lists why turns have no valid answer, the most frequent first.
func reasons(b *strings.Builder, a *runs.Aggregate) {
	const most = 5
	for _, g := range a.Targets {
		names := slices.SortedFunc(maps.Keys(g.Reasons), func(x, y string) int {
			return cmp.Or(cmp.Compare(g.Reasons[y], g.Reasons[x]), cmp.Compare(x, y))
		})
		for i, name := range names {
			if i == most {
				fmt.Fprintf(b, "%s: %d further reasons are in aggregate.json\n", g.Name, len(names)-most)
				break
			}
			fmt.Fprintf(b, "%s: %d × %s\n", g.Name, g.Reasons[name], name)
		}
	}
}

// harness says what of the figures may be ours.
func harness(b *strings.Builder, a *runs.Aggregate) {
	var late endpoint.Millis
	var hangover string
	stamps := map[string]bool{}
	for _, g := range a.Targets {
		late = max(late, g.LateMax)
		if g.Hangover.P50 != nil {
			hangover = quantile(g.Hangover.P50)
		}
		if g.Stamps != "" {
			stamps[g.Stamps] = true
		}
	}
	fmt.Fprintf(b, "harness: audio written at most %.1f ms late; receive stamps: %s\n"+
		"  hangover p50 %s ms (VAD %s)\n",
		float64(late), orDash(strings.Join(slices.Sorted(maps.Keys(stamps)), ", ")), orDash(hangover), a.VAD)
	if h := a.Harness; h != nil {
		fmt.Fprintf(b, "  error of TTF: bias %+.2f ms, p99 %.2f ms (calibrated %s, %s)\n",
			h.TTFBias/1e3, h.TTFP99/1e3, h.At.Format(time.DateOnly), count(h.Streams, "stream"))
	} else {
		b.WriteString("  error of TTF: not known; sttbench calibrate measures it\n")
	}
}

// table aligns columns: the first to the left, all others to the right.
type table struct{ rows [][]string }

func newTable() *table { return new(table) }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(b *strings.Builder) {
	var width []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range t.rows {
		var line strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				line.WriteString(c + pad)
			} else {
				line.WriteString("  " + pad + c)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func span(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

func seconds(ms endpoint.Millis) string {
	return (time.Duration(float64(ms)) * time.Millisecond).Round(time.Second).String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func percent(n int, acks map[endpoint.Ack]int) string {
	of := 0
	for _, k := range acks {
		of += k
	}
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(n)/float64(of))
}

func value(v stat.Value) string {
	if v.Censored {
		return fmt.Sprintf(">%.0f", v.X)
	}
	return fmt.Sprintf("%.0f", v.X)
}

func quantile(q *runs.Quantile) string {
	if q == nil {
		return "-"
	}
	return value(q.Value)
}

// large prints a quantile far out only when the sample reaches it.
func large(q *runs.Quantile, n int) string {
	const least = 20 // below, the 95th percentile is just the maximum
	if q == nil || n < least {
		return fmt.Sprintf("n<%d", least)
	}
	return value(q.Value)
}

func interval(q *runs.Quantile) string {
	switch {
	case q == nil:
		return ""
	case q.Lo == nil:
		return fmt.Sprintf("n<%d", q.Need)
	}
	return "[" + value(*q.Lo) + ", " + value(*q.Hi) + "]"
}

func rate(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100**r)
}

func rates(lo, hi *float64) string {
	if lo == nil {
		return ""
	}
	return fmt.Sprintf("[%.1f, %.1f]", 100**lo, 100**hi)
}
