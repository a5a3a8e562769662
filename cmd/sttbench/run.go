package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"sttbench/endpoint"
	"sttbench/report"
	"sttbench/runs"
)

type runCmd struct {
	Config string `arg:"" name:"config" help:"YAML file that describes the run."`
	Out    string `name:"out" placeholder:"DIR" help:"Run directory; runs/NAME by default, with the run's name."`
	Resume bool   `name:"resume" help:"Go on with the run in the directory: only what is missing is streamed."`
	JSON   bool   `name:"json" help:"Print the aggregate as one JSON document instead of the report."`
	detector
}

// Help implements kong.HelpProvider.
func (runCmd) Help() string {
	return `Streams every chosen item to every target, in an order shuffled by the seed, and keeps each session as a file of the run directory. Outcomes, scores and the report are computed from these files. A run that was stopped or killed loses at most the sessions in flight; --resume measures what is missing.

A small configuration:

    datasets:
      - manifest: corpus/manifest.yaml
    targets:
      - {provider: deepgram, model: nova-3}
      - {name: openai-forced, provider: openai}
    repeats: 3

A session that failed is a result and is kept. To measure it again, remove its file below sessions/ and use --resume.

docs/CONFIG.md describes every key. Exit codes: 0 done, 1 interrupted or a target without any valid answer, 3 configuration or input, 4 a target spoiled by this machine.`
}

// Run implements the command.
func (c *runCmd) Run(ctx context.Context, a *app) error {
	cfg, err := runs.LoadConfig(c.Config)
	if err != nil {
		return err
	}
	preparer, err := c.preparer(a)
	if err != nil {
		return err
	}
	defer preparer.Model.Close()
	dir := c.Out
	if dir == "" {
		dir = filepath.Join("runs", cfg.Name)
	}
	targets, err := cfg.Resolve(a.env)
	if err != nil {
		return err
	}
	for i, t := range targets {
		a.hide(t.Key)
		keyVar := cfg.Targets[i].KeyVar
		if keyVar == "" {
			keyVar = t.Dialect.Describe().KeyVar
		}
		a.warnKeyless(t.Name, keyVar, t.Key)
	}
	show := newProgress(a)
	agg, err := runs.Run(ctx, cfg, runs.Options{
		Dir: dir, Resume: c.Resume, Preparer: preparer, Env: a.env, Software: softwareVersion(), Progress: show.update,
		Harness: calibration(),
	})
	show.stop()
	if agg == nil {
		return err
	}
	interrupted := err
	if nothingRan(agg) {
		fmt.Fprintln(a.stderr, "nothing was streamed")
	} else if err := print(a, agg, c.JSON); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "run directory: %s\n", dir)
	if interrupted != nil {
		return &exitError{exitFailed, interrupted, "go on with sttbench run --resume --out " + dir + " " + c.Config}
	}
	return unanswered(agg)
}

func print(a *app, agg *runs.Aggregate, asJSON bool) error {
	if asJSON {
		return report.JSON(a.stdout, agg)
	}
	return report.Text(a.stdout, agg)
}

// nothingRan tells whether a run was stopped before its first session ended.
func nothingRan(agg *runs.Aggregate) bool {
	for _, t := range agg.Targets {
		if t.NotRun < t.Sessions {
			return false
		}
	}
	return true
}

// unanswered is the error of a run in which a target never gave a valid answer.
func unanswered(agg *runs.Aggregate) error {
	var silent []string
	code := exitFailed
	for _, t := range agg.Targets {
		valid := t.Classes[endpoint.NoSpeech] // there was nothing to answer
		for c, n := range t.Classes {
			if c.Measured() {
				valid += n
			}
		}
		if valid == 0 && t.Scheduled > 0 {
			silent = append(silent, t.Name)
			if t.Classes[endpoint.ClientInvalid] == t.Scheduled {
				code = exitClientInvalid
			}
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return &exitError{code, errors.New("no valid answer from " + strings.Join(silent, ", ")), ""}
}

type replayCmd struct {
	Dir  string `arg:"" name:"dir" help:"Run directory."`
	JSON bool   `name:"json" help:"Print the aggregate as one JSON document instead of the report."`
}

// Help implements kong.HelpProvider.
func (replayCmd) Help() string {
	return `Computes outcomes.jsonl, scores.jsonl and aggregate.json of a run directory again from its recorded sessions, and prints the report. Nothing is streamed; when neither the sessions nor sttbench have changed, the files keep their bytes.`
}

// Run implements the command.
func (c *replayCmd) Run(ctx context.Context, a *app) error {
	agg, err := runs.Replay(ctx, c.Dir)
	if err != nil {
		return err
	}
	return print(a, agg, c.JSON)
}

type reportCmd struct {
	Dir    string `arg:"" name:"dir" help:"Run directory."`
	Format string `name:"format" enum:"text,json" default:"text" help:"text or json."`
}

// Run implements the command.
func (c *reportCmd) Run(_ context.Context, a *app) error {
	agg, err := runs.Load(c.Dir)
	if err != nil {
		return err
	}
	return print(a, agg, c.Format == "json")
}

// progress shows how far a run has come: a bar on a terminal, else a line now and
// then.
type progress struct {
	w       io.Writer
	bars    *mpb.Progress
	prepare *mpb.Bar
	stream  *mpb.Bar
	classes map[endpoint.Class]int
	left    time.Duration
	said    int                    // tenth printed last
	text    atomic.Pointer[string] // drawn behind the bar, on its own goroutine
}

func newProgress(a *app) *progress {
	p := &progress{w: a.stderr, classes: map[endpoint.Class]int{}, said: -1}
	if a.screen != nil && a.screen.redraw {
		// mpb redraws only on the terminal itself; none of its text can hold a key.
		p.bars = mpb.New(mpb.WithOutput(a.screen.file), mpb.WithRefreshRate(200*time.Millisecond))
	}
	return p
}

// update takes in a step. It is called from one goroutine at a time.
func (p *progress) update(s runs.Progress) {
	if s.Class != "" {
		p.classes[s.Class]++
	}
	p.left = s.Remaining
	text := p.tally()
	p.text.Store(&text)
	if p.bars == nil {
		p.line(s)
		return
	}
	if s.Sessions == 0 {
		if p.prepare == nil {
			p.prepare = p.bars.AddBar(int64(s.Items), mpb.BarWidth(24), mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.Name("preparing "), decor.CountersNoUnit("%d/%d items")))
		}
		p.prepare.SetCurrent(int64(s.Prepared))
		return
	}
	if p.stream == nil {
		p.stream = p.bars.AddBar(int64(s.Sessions), mpb.BarWidth(24),
			mpb.PrependDecorators(decor.Name("streaming "), decor.CountersNoUnit("%d/%d sessions")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *p.text.Load() })))
	}
	p.stream.SetCurrent(int64(s.Done))
}

// line prints a plain line at every tenth of the sessions.
func (p *progress) line(s runs.Progress) {
	switch {
	case s.Sessions == 0 && s.Prepared == s.Items:
		fmt.Fprintf(p.w, "prepared %d items\n", s.Items)
	case s.Sessions > 0:
		tenth := 10 * s.Done / s.Sessions
		if tenth != p.said {
			p.said = tenth
			fmt.Fprintf(p.w, "streamed %d of %d sessions%s\n", s.Done, s.Sessions, *p.text.Load())
		}
	}
}

// tally is the classes so far and the least time left.
func (p *progress) tally() string {
	var b strings.Builder
	for _, c := range endpoint.Classes() {
		if n := p.classes[c]; n > 0 {
			fmt.Fprintf(&b, " %s %d", c, n)
		}
	}
	if p.left > 0 {
		fmt.Fprintf(&b, ", %v or more left", p.left.Round(time.Second))
	}
	return b.String()
}

// stop leaves the bar as it is.
func (p *progress) stop() {
	if p.bars == nil {
		return
	}
	for _, b := range []*mpb.Bar{p.prepare, p.stream} {
		if b != nil && !b.Completed() {
			b.Abort(false)
		}
	}
	p.bars.Wait()
}
