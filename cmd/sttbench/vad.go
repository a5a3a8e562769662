package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"sttbench/corpus"
	"sttbench/runs"
	"sttbench/vad"
)

type vadCmd struct {
	Files []string `arg:"" name:"file" help:"WAV, FLAC or MP3 file."`
	JSON  bool     `name:"json" help:"Print one JSON object per file and line."`
	detector
}

// Help implements kong.HelpProvider.
func (vadCmd) Help() string {
	return `A turn is a stretch of speech. SE, the speech end, is the position at which the silence after it begins; EOS is the first position at which a detector that cannot look ahead knows that the turn is over. What lies between them, the hangover, is the price of the local endpointing policy and not of any provider.

Examples:

    sttbench vad call.wav
    sttbench vad --json calls/*.wav | jq '.turns | length'

A file that cannot be used is named on standard error; the others are still done, and the exit code is 3.`
}

// detector holds the flags of all commands that need the voice activity
// detector.
type detector struct {
	ONNXRuntime string `name:"onnxruntime" placeholder:"FILE" help:"Shared library of ONNX Runtime; found by itself after make deps."`
	VADModel    string `name:"vad-model" placeholder:"FILE" help:"Silero VAD model; found by itself after make deps."`
}

// preparer loads the detector. Close its Model after use.
func (d detector) preparer(a *app) (*runs.Preparer, error) {
	paths, err := vad.Locate(d.ONNXRuntime, d.VADModel)
	if err != nil {
		return nil, detectorError(err)
	}
	model, err := vad.Open(paths)
	if err != nil {
		return nil, detectorError(err)
	}
	warned := false
	return &runs.Preparer{Model: model, Params: vad.DefaultParams(), Warn: func(err error) {
		if !warned { // what the cache lacks for one file it lacks for all
			a.warn(err)
		}
		warned = true
	}}, nil
}

// detectorError makes every failure to load the detector one of input files;
// explain knows the hint of a missing one.
func detectorError(err error) error {
	e := explain(context.Background(), err)
	e.code = exitInput
	return e
}

// vadLine is one line of --json. Positions are seconds of audio.
type vadLine struct {
	File       string    `json:"file"`
	SampleRate int       `json:"sample_rate"`
	Duration   float64   `json:"duration_s"`
	Turns      []vadTurn `json:"turns"`
}

type vadTurn struct {
	Start float64 `json:"start_s"`
	SE    float64 `json:"se_s"`
	EOS   float64 `json:"eos_s"`
}

// Run implements the command.
func (c *vadCmd) Run(ctx context.Context, a *app) error {
	preparer, err := c.preparer(a)
	if err != nil {
		return err
	}
	defer preparer.Model.Close()
	show := a.stdout.json
	if !c.JSON {
		table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		defer table.Flush()
		fmt.Fprintln(table, "turn\tstart s\tSE s\tEOS s\thangover ms\t  file")
		show = func(v any) error { return vadRows(table, v.(vadLine)) }
	}
	failed := 0
	for _, file := range c.Files {
		line, err := analyze(ctx, preparer, file)
		if err == nil {
			err = show(line)
		} else if ctx.Err() == nil {
			failed++
			a.report(ctx, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	switch {
	case failed > 0 && len(c.Files) > 1:
		return input(fmt.Errorf("%d of %d files could not be used", failed, len(c.Files)), "")
	case failed > 0:
		return &exitError{code: exitInput}
	}
	return nil
}

func analyze(ctx context.Context, p *runs.Preparer, file string) (vadLine, error) {
	found, err := p.Prepare(ctx, corpus.Item{ID: filepath.Base(file), Audio: file}, false)
	if err != nil {
		return vadLine{}, err
	}
	line := vadLine{File: file, SampleRate: found.SourceRate(), Duration: seconds(found.Item.Duration), Turns: []vadTurn{}}
	for _, t := range found.Turns.List {
		line.Turns = append(line.Turns, vadTurn{seconds(t.Start), seconds(t.SE), seconds(t.EOS)})
	}
	return line, nil
}

// vadRows prints a file's turns as rows of the table.
func vadRows(table *tabwriter.Writer, l vadLine) error {
	file := "  " + plainText(strings.ReplaceAll(l.File, "\t", " "))
	if len(l.Turns) == 0 {
		_, err := fmt.Fprintf(table, "none\t\t\t\t\t%s\n", file)
		return err
	}
	for i, t := range l.Turns {
		if _, err := fmt.Fprintf(table, "%d\t%.3f\t%.3f\t%.3f\t%.0f\t%s\n", i+1, t.Start, t.SE, t.EOS, 1e3*(t.EOS-t.SE), file); err != nil {
			return err
		}
	}
	return nil
}

// seconds is d rounded once, so that a whole number of milliseconds prints as
// such.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
