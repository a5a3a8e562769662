package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"sttbench/endpoint"
	"sttbench/record"
	"sttbench/scoring/normalize"
	"sttbench/scoring/wer"
)

// scores are the word error rates of one turn against the item's reference; the
// zero value is a turn that is not scored.
type scores struct {
	profile string
	// final and partial are nil where there is no reference, no text, or the
	// provider never had its chance.
	final, partial *wer.Alignment
	tail           wer.Tail
}

// scoreTurn scores the texts of an outcome. The error says why texts that exist
// could not be compared.
func scoreTurn(rec *record.Session, o endpoint.Outcome, profile normalize.Profile) (scores, error) {
	s := scores{profile: profile.String()}
	if !rec.Open.Item.HasReference || !o.Class.Scored() {
		return s, nil
	}
	ref := profile.Tokens(rec.Open.Item.Reference)
	final, err := wer.Align(ref, profile.Tokens(o.FinalText))
	if err != nil {
		return s, fmt.Errorf("word error rate: %w", err)
	}
	s.final, s.tail = &final, wer.TailError(final, wer.TailWords)
	if o.TTFP == nil {
		return s, nil
	}
	partial, err := wer.Align(ref, profile.Tokens(o.PartialText))
	if err != nil {
		return s, fmt.Errorf("word error rate of the partial: %w", err)
	}
	s.partial = &partial
	return s, nil
}

func werOf(a *wer.Alignment) *float64 {
	if a == nil {
		return nil
	}
	return rate(a.WER())
}

// probeResult is the document of probe --json. What is not available is null.
// The values at the top level are those of the last scheduled turn.
type probeResult struct {
	Provider   string             `json:"provider"`
	Model      string             `json:"model"`
	Endpoint   string             `json:"endpoint"`
	Outcome    endpoint.Class     `json:"outcome"`
	Ack        endpoint.Ack       `json:"ack"`
	TTF        *endpoint.Millis   `json:"ttf_ms"`
	TTFFirst   *endpoint.Millis   `json:"ttf_first_ms"`
	TTFP       *endpoint.Millis   `json:"ttfp_ms"`
	AckMS      *endpoint.Millis   `json:"ack_ms"`
	TTFFromSE  *endpoint.Millis   `json:"ttf_from_se_ms"`
	Hangover   *endpoint.Millis   `json:"hangover_ms"`
	ForceDelay *endpoint.Millis   `json:"force_delay_ms"`
	RTT        *endpoint.Millis   `json:"rtt_ms"`
	Connect    connectJSON        `json:"connect"`
	Lateness   *latenessJSON      `json:"lateness_us"`
	Turns      []endpoint.Outcome `json:"turns"`
	Final      *string            `json:"final_text"`
	Partial    *string            `json:"partial_text"`
	WER        *float64           `json:"wer"`
	PartialWER *float64           `json:"partial_wer"`
	TailWER    *float64           `json:"tail_wer"`
}

// connectJSON holds the phases of the connection; those that did not happen are
// null.
type connectJSON struct {
	Prepare *endpoint.Millis `json:"prepare_ms"`
	DNS     *endpoint.Millis `json:"dns_ms"`
	TCP     *endpoint.Millis `json:"tcp_ms"`
	TLS     *endpoint.Millis `json:"tls_ms"`
	Upgrade *endpoint.Millis `json:"upgrade_ms"`
	Ready   *endpoint.Millis `json:"ready_ms"`
	Address *string          `json:"address"`
	Stamps  string           `json:"stamps"` // kernel or user
	Warm    bool             `json:"warm"`
}

// latenessJSON sums up how late our own audio writes began.
type latenessJSON struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func newProbeResult(rec *record.Session, found endpoint.Result, s scores) probeResult {
	o := found.Turns[len(found.Turns)-1]
	t, c := rec.Open.Target, rec.Connect
	r := probeResult{
		Provider: t.Provider, Model: t.Model, Endpoint: t.Endpoint, Outcome: o.Class, Ack: o.Ack,
		TTF: o.TTF, TTFFirst: o.TTFFirst, TTFP: o.TTFP, AckMS: o.AckMS, TTFFromSE: o.TTFFromSE,
		Hangover: o.Hangover, ForceDelay: o.ForceDelay, RTT: phase(c.RTT),
		Connect: connectJSON{phase(c.Prepare), phase(c.DNS), phase(c.TCP), phase(c.TLS), phase(c.Upgrade), phase(c.Ready),
			textOrNull(c.Address, c.Address != ""), c.Stamps, c.Warm},
		Turns:   found.Turns,
		Final:   textOrNull(o.FinalText, o.FinalText != "" || o.Class.Scored()),
		Partial: textOrNull(o.PartialText, o.PartialText != "" || o.TTFP != nil),
		WER:     werOf(s.final), PartialWER: werOf(s.partial), TailWER: rate(s.tail.Rate()),
	}
	if rec.Sent.Chunks > 0 {
		r.Lateness = &latenessJSON{micros(rec.Sent.LateP50), micros(rec.Sent.LateP99), micros(rec.Sent.LateMax)}
	}
	return r
}

func phase(d time.Duration) *endpoint.Millis {
	if d == 0 {
		return nil
	}
	m := endpoint.ToMillis(d)
	return &m
}

func textOrNull(text string, there bool) *string {
	if !there {
		return nil
	}
	return &text
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// writeSummary prints the result for people.
func writeSummary(w io.Writer, rec *record.Session, found endpoint.Result, s scores) error {
	o := found.Turns[len(found.Turns)-1]
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, parts ...string) {
		parts = present(parts)
		if len(parts) > 0 {
			fmt.Fprintf(table, "%s\t%s\n", name, plainText(strings.Join(parts, ", ")))
		}
	}
	row("target", strings.TrimSpace(rec.Open.Target.Provider+" "+rec.Open.Target.Model), rec.Open.Target.Endpoint)
	row("outcome", outcomeText(o))
	if len(found.Turns) > 1 {
		row("turns", turnsText(found.Turns))
	}
	row("latency", latency("ttf ", o.TTF), latency("first final ", o.TTFFirst), latency("first text ", o.TTFP), latency("ack ", o.AckMS))
	if o.TTFFromSE != nil {
		row("from SE", latency("ttf ", o.TTFFromSE), latency("of it hangover ", o.Hangover), latency("force delay ", o.ForceDelay))
	}
	row("text", quoted(o.FinalText))
	if o.PartialText != o.FinalText {
		row("first text", quoted(o.PartialText))
	}
	if found.SettledText != o.FinalText {
		row("text at end", quoted(found.SettledText))
	}
	row("wer", scoreText(s)...)
	c := rec.Connect
	row("connection", c.Address, span("prepare", c.Prepare), span("dns", c.DNS), span("tcp", c.TCP), span("tls", c.TLS),
		span("upgrade", c.Upgrade), span("ready", c.Ready), span("rtt", c.RTT), c.Stamps+" stamps")
	if l := rec.Sent; l.Chunks > 0 {
		row("lateness", fmt.Sprintf("p50 %.0f µs", micros(l.LateP50)), fmt.Sprintf("p99 %.0f µs", micros(l.LateP99)),
			fmt.Sprintf("max %.0f µs", micros(l.LateMax)))
	}
	return table.Flush()
}

func present(parts []string) []string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func outcomeText(o endpoint.Outcome) string {
	text := string(o.Class)
	if o.Forced {
		text += ", ack " + string(o.Ack)
	}
	if o.CensoredAt != nil {
		text += latency(", no answer within ", o.CensoredAt)
	}
	if o.Reason != "" {
		text += " (" + o.Reason + ")"
	}
	return text
}

// turnsText lists class and latency of each turn.
func turnsText(turns []endpoint.Outcome) string {
	var list []string
	for _, o := range turns {
		list = append(list, strings.TrimSpace(string(o.Class)+" "+latency("", o.TTF)))
	}
	return strings.Join(list, "; ")
}

func latency(label string, m *endpoint.Millis) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%s%.1f ms", label, float64(*m))
}

func span(name string, d time.Duration) string { return latency(name+" ", phase(d)) }

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", text)
}

func scoreText(s scores) []string {
	if s.final == nil {
		return nil
	}
	parts := []string{percent(s.final) + fmt.Sprintf(" (%d errors, %d words)", s.final.Errors(), s.final.RefWords)}
	if s.partial != nil {
		parts = append(parts, "first text "+percent(s.partial))
	}
	if s.tail.RefWords > 0 {
		parts = append(parts, fmt.Sprintf("tail %d of %d missed", s.tail.Missed, s.tail.RefWords))
	}
	return append(parts, s.profile)
}

func percent(a *wer.Alignment) string {
	if r := werOf(a); r != nil {
		return fmt.Sprintf("%.1f %%", 100**r)
	}
	return "no rate"
}
