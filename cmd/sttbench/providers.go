package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sttbench/providers"
	"sttbench/providers/catalogue"
)

type providersCmd struct {
	Provider string `arg:"" optional:"" help:"Tell everything about this one: parameters, models, prices, sources."`
	JSON     bool   `name:"json" help:"Print one JSON array with everything."`
}

// Help implements kong.HelpProvider.
func (providersCmd) Help() string {
	return `Prices are list prices at their date. What is known of a protocol is listed with its source and how far that can be trusted: "source" (the vendor's code or specification), "docs", "report" (third parties), "unsure".

Examples:

    sttbench providers
    sttbench providers deepgram
    sttbench providers --json | jq '.[] | select(.can_force) | .name'`
}

// providerJSON is a provider's description in the words of the command line.
// Durations and sizes that a vendor does not limit are 0.
type providerJSON struct {
	Name            string       `json:"name"`
	Title           string       `json:"title"`
	DialectVersion  string       `json:"dialect_version"`
	Transport       string       `json:"transport"`
	Endpoint        string       `json:"endpoint"`
	KeyVariable     string       `json:"key_variable"`
	Models          []modelJSON  `json:"models"`
	Languages       string       `json:"languages"`
	Params          []paramJSON  `json:"params"`
	SampleRates     []int        `json:"sample_rates"`
	Chunk           chunkJSON    `json:"chunk"`
	CanForce        bool         `json:"can_force"`
	ForceMessage    string       `json:"force_message"`
	ForceEndsStream bool         `json:"force_ends_stream"`
	ForceNeedsAudio float64      `json:"force_needs_audio_s"`
	Continuous      bool         `json:"continuous"`
	MaxStream       float64      `json:"max_stream_s"`
	KeepAliveIdle   float64      `json:"keep_alive_idle_s"`
	Prices          []priceJSON  `json:"prices"`
	Sources         []sourceJSON `json:"sources"`
}

type modelJSON struct {
	ID   string `json:"id"`
	Note string `json:"note"`
}

type paramJSON struct {
	Name    string `json:"name"`
	Values  string `json:"values"`
	Default string `json:"default"`
	Note    string `json:"note"`
}

type chunkJSON struct {
	Min    float64 `json:"min_s"`
	Advice float64 `json:"advice_s"`
	Max    float64 `json:"max_s"`
}

type priceJSON struct {
	Model  string  `json:"model"`
	USD    float64 `json:"usd"`
	Unit   string  `json:"unit"`
	Note   string  `json:"note"`
	Date   string  `json:"date"`
	Source string  `json:"source"`
}

type sourceJSON struct {
	What       string `json:"what"`
	Confidence string `json:"confidence"`
}

// Run implements the command.
func (c *providersCmd) Run(_ context.Context, a *app) error {
	entries := catalogue.All()
	if c.Provider != "" {
		entry, err := lookupProvider(c.Provider)
		if err != nil {
			return err
		}
		entries = []catalogue.Entry{entry}
	}
	switch {
	case c.JSON:
		all := []providerJSON{}
		for _, e := range entries {
			all = append(all, toJSON(e.Dialect.Describe()))
		}
		return a.stdout.json(all)
	case c.Provider != "":
		return describe(a.stdout, entries[0].Dialect.Describe())
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKEY VARIABLE\tFORCED ENDPOINT\tDEFAULT MODEL\tUSD/MIN\tPRICE OF\tTITLE")
	for _, e := range entries {
		d := e.Dialect.Describe()
		usd, date := defaultPrice(d)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, orDash(d.KeyVar), forcing(d), defaultModel(d), usd, date, d.Title)
	}
	return table.Flush()
}

func toJSON(d providers.Description) providerJSON {
	p := providerJSON{
		Name: d.Name, Title: d.Title, DialectVersion: d.Version, Transport: d.Transport, Endpoint: d.Endpoint,
		KeyVariable: d.KeyVar, Models: []modelJSON{}, Languages: d.Languages, Params: []paramJSON{}, SampleRates: d.SampleRates,
		Chunk:    chunkJSON{seconds(d.Chunk.Min), seconds(d.Chunk.Advice), seconds(d.Chunk.Max)},
		CanForce: d.CanForce, ForceMessage: d.ForceMessage, ForceEndsStream: d.ForceEndsStream,
		ForceNeedsAudio: seconds(d.ForceNeedsAudio), Continuous: d.Continuous, MaxStream: seconds(d.MaxStream),
		KeepAliveIdle: seconds(d.KeepAliveIdle), Prices: []priceJSON{}, Sources: []sourceJSON{},
	}
	for _, m := range d.Models {
		p.Models = append(p.Models, modelJSON(m))
	}
	for _, v := range d.Params {
		p.Params = append(p.Params, paramJSON(v))
	}
	for _, v := range d.Prices {
		p.Prices = append(p.Prices, priceJSON(v))
	}
	for _, s := range d.Sources {
		p.Sources = append(p.Sources, sourceJSON(s))
	}
	return p
}

// describe prints everything about one provider.
func describe(w io.Writer, d providers.Description) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\t%s\n", d.Name, d.Title)
	fmt.Fprintf(table, "endpoint\t%s\n", orDash(d.Endpoint))
	fmt.Fprintf(table, "key variable\t%s\n", orDash(d.KeyVar))
	fmt.Fprintf(table, "languages\t%s\n", d.Languages)
	fmt.Fprintf(table, "sample rates\t%s\n", strings.Trim(fmt.Sprint(d.SampleRates), "[]"))
	fmt.Fprintf(table, "forced endpoint\t%s\n", forceDetail(d))
	fmt.Fprintf(table, "longest stream\t%s\n", limit(d.MaxStream))
	fmt.Fprintf(table, "audio per message\tat least %s, advised %s, at most %s\n", limit(d.Chunk.Min), limit(d.Chunk.Advice), limit(d.Chunk.Max))
	section(table, "models, the default first", len(d.Models))
	for _, m := range d.Models {
		fmt.Fprintf(table, "  %s\t%s\n", m.ID, m.Note)
	}
	section(table, "parameters (--param NAME=VALUE)", len(d.Params))
	for _, p := range d.Params {
		text := p.Values
		if p.Default != "" {
			text += "; we send " + p.Default
		}
		if p.Note != "" {
			text += "; " + p.Note
		}
		fmt.Fprintf(table, "  %s\t%s\n", p.Name, text)
	}
	section(table, "prices", len(d.Prices))
	for _, p := range d.Prices {
		fmt.Fprintf(table, "  %s\t%s USD per %s at %s, %s (%s)\n", p.Model, number(p.USD), p.Unit, p.Date, orDash(p.Note), p.Source)
	}
	section(table, "sources", len(d.Sources))
	for _, s := range d.Sources {
		fmt.Fprintf(table, "  %s\t%s\n", s.Confidence, s.What)
	}
	return table.Flush()
}

// section begins a list with a heading, unless there is nothing in it. The
// heading has no tab, so each list aligns by itself.
func section(w io.Writer, heading string, entries int) {
	if entries > 0 {
		fmt.Fprintf(w, "\n%s:\n", heading)
	}
}

func forcing(d providers.Description) string {
	if !d.CanForce {
		return "no"
	}
	return "yes"
}

func forceDetail(d providers.Description) string {
	text := forcing(d)
	if d.CanForce && d.ForceMessage != "" {
		text += ": " + d.ForceMessage
	}
	if d.ForceEndsStream {
		text += "; ends the stream"
	}
	if d.ForceNeedsAudio > 0 {
		text += "; needs " + d.ForceNeedsAudio.String() + " of audio"
	}
	return text
}

// defaultPrice is the first listed price of the default model, and its date.
func defaultPrice(d providers.Description) (usd, date string) {
	for _, p := range d.Prices {
		if p.Model == defaultModel(d) && p.Unit == "minute" {
			return number(p.USD), p.Date
		}
	}
	return "-", "-"
}

func defaultModel(d providers.Description) string {
	if len(d.Models) == 0 {
		return "-"
	}
	return d.Models[0].ID
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func limit(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
