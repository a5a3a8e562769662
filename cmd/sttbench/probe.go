package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"sttbench/corpus"
	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
	"sttbench/regular"
	"sttbench/runs"
	"sttbench/scoring/normalize"
	"sttbench/streamer"
)

type probeCmd struct {
	Provider      string        `arg:"" help:"Provider, as sttbench providers lists it."`
	Audio         string        `required:"" placeholder:"FILE" help:"WAV, FLAC or MP3 file to stream, in real time."`
	Reference     *string       `xor:"reference" placeholder:"TEXT" help:"What is said, for the word error rate."`
	ReferenceFile string        `xor:"reference" placeholder:"FILE" help:"File that holds what is said."`
	Profile       string        `default:"plain" placeholder:"NAME" help:"Normalization profile of the word error rate (${default})."`
	Endpoint      string        `placeholder:"URL" help:"Server to use instead of the provider's own, as ws://127.0.0.1:9000."`
	Model         string        `placeholder:"NAME" help:"Model; the provider's default as sttbench providers lists it."`
	Language      string        `placeholder:"TAG" help:"Language of the audio, as en or en-US; the provider's default."`
	Param         []string      `sep:"none" placeholder:"NAME=VALUE" help:"Parameter of the provider; may be repeated. It wins over our presets."`
	Force         string        `default:"auto" enum:"auto,off" placeholder:"auto|off" help:"auto forces an endpoint where speech ends if the provider can be forced; off leaves endpointing to the provider (${default})."`
	Turns         string        `default:"last" enum:"last,every" placeholder:"last|every" help:"Measure at the end of the last turn only or of every turn (${default})."`
	MaxLateness   time.Duration `default:"40ms" placeholder:"D" help:"How late this machine may be around the turn's end (${default}); beyond, the outcome is client_invalid."`
	Deadline      time.Duration `default:"10s" placeholder:"D" help:"How long an answer is waited for (${default})."`
	SampleRate    int           `placeholder:"HZ" help:"Sample rate to stream at; the provider's preferred one."`
	Record        string        `placeholder:"FILE" help:"Keep the session record: everything sent and received, with stamps."`
	Trace         bool          `help:"Keep every single audio write in the record."`
	JSON          bool          `name:"json" help:"Print one JSON document."`
	detector
}

// Help implements kong.HelpProvider.
func (probeCmd) Help() string {
	return `The voice activity detector finds where speech ends in the file. The file is then streamed as a microphone would, an endpoint is forced there, and the time to the answer is taken. Main latencies:

    ttf          from the forced endpoint (T0) to the last final text
    ttfp         from T0 to the first text, partial or final
    ack          from T0 to the provider's closing event
    ttf from SE  from the end of speech (SE) to the last final text: the wait a user feels

Examples:

    DEEPGRAM_API_KEY=… sttbench probe deepgram --audio call.wav
    sttbench probe openai --audio call.wav --model whisper-1 --reference "four queen of clubs" --json | jq .ttf_ms
    sttbench probe deepgram --audio call.wav --param keyterm=sttbench --param punctuate=false --record call.jsonl
    sttbench probe vosk --audio call.wav --endpoint ws://127.0.0.1:2700 --turns every

Of --json, the values at the top level are those of the last measured turn; turns[] has one object per measured turn; what is not available is null. Times are milliseconds, error rates fractions.

The exit code is 0 for the outcomes ok, early_final, late_final, late_partial and early_partial, 4 for client_invalid (this machine was too slow), and 1 for all others. The key is read from the environment variable that sttbench providers names.`
}

// Run implements the command.
func (c *probeCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	profile, err := lookupProfile(c.Profile)
	if err != nil {
		return err
	}
	target, err := c.target(a)
	if err != nil {
		return err
	}
	reference, err := c.reference()
	if err != nil {
		return err
	}
	var keep *recordFile
	if c.Record != "" {
		if keep, err = createRecord(c.Record); err != nil {
			return err
		}
		defer keep.discard()
	}
	prepared, err := c.prepare(ctx, a, reference)
	if err != nil {
		return err
	}
	if len(prepared.Turns.List) == 0 {
		a.warn(fmt.Errorf("%s: no speech found; it is streamed all the same", c.Audio))
	}
	rec, err := c.stream(ctx, a, target, prepared)
	if err != nil {
		return streamError(err)
	}
	if keep != nil {
		if err := keep.commit(rec); err != nil {
			return err
		}
	}
	return c.tell(a, rec, profile)
}

// check refuses flags that make no sense together.
func (c *probeCmd) check() error {
	switch {
	case c.Deadline < 100*time.Millisecond || c.Deadline > 5*time.Minute:
		return usage(fmt.Errorf("--deadline %v: want 100ms to 5m", c.Deadline), "")
	case c.MaxLateness <= 0:
		return usage(fmt.Errorf("--max-lateness %v: want more than 0", c.MaxLateness), "")
	case c.SampleRate < 0:
		return usage(fmt.Errorf("--sample-rate %d: want a number above 0", c.SampleRate), "")
	case c.Trace && c.Record == "":
		return usage(errors.New("--trace: there is no record to keep the audio writes in"), "add --record FILE")
	}
	return nil
}

// target is what the flags ask for. Its configuration has been tried.
func (c *probeCmd) target(a *app) (runs.Target, error) {
	entry, err := lookupProvider(c.Provider)
	if err != nil {
		return runs.Target{}, err
	}
	params, err := parseParams(c.Param)
	if err != nil {
		return runs.Target{}, err
	}
	t := runs.Target{
		Name: c.Provider, Dialect: entry.Dialect, Model: c.Model, Language: c.Language, Endpoint: c.Endpoint,
		Params: params, Natural: c.Force == "off", EveryTurn: c.Turns == "every", SampleRate: c.SampleRate,
		Deadline: c.Deadline,
	}
	name := entry.Dialect.Describe().KeyVar
	if name != "" {
		t.Key = providers.NewSecret(a.env(name))
		a.hide(t.Key)
	}
	if err := t.Check(); err != nil {
		return t, err
	}
	a.warnKeyless(t.Name, name, t.Key)
	return t, nil
}

// parseParams reads NAME=VALUE. A name given twice is a mistake, because only
// one of the values could be meant.
func parseParams(list []string) (map[string]string, error) {
	params := make(map[string]string, len(list))
	for _, text := range list {
		name, value, found := strings.Cut(text, "=")
		switch {
		case !found || name == "":
			return nil, usage(fmt.Errorf("--param %s: want NAME=VALUE", text), "")
		case hasKey(params, name):
			return nil, usage(fmt.Errorf("--param %s is given twice", name), "")
		}
		params[name] = value
	}
	return params, nil
}

func hasKey(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// maxReference bounds a reference file, in bytes: text for hours of speech.
const maxReference = 4 << 20

// reference is the text to compare with, nil where there is none.
func (c *probeCmd) reference() (*string, error) {
	if c.ReferenceFile == "" {
		return c.Reference, nil
	}
	fail := func(err error) (*string, error) {
		return nil, input(fmt.Errorf("%s: %w", c.ReferenceFile, regular.WithoutPath(err)), "")
	}
	f, _, err := regular.Open(c.ReferenceFile)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReference+1))
	if err != nil {
		return fail(err)
	}
	if len(data) > maxReference {
		return fail(fmt.Errorf("reference is longer than %d MiB", maxReference>>20))
	}
	text := strings.TrimSpace(string(data))
	return &text, nil
}

// prepare decodes the file and finds its turns.
func (c *probeCmd) prepare(ctx context.Context, a *app, reference *string) (*runs.Prepared, error) {
	preparer, err := c.preparer(a)
	if err != nil {
		return nil, err
	}
	defer preparer.Model.Close()
	id := filepath.Base(c.Audio)
	item := corpus.Item{ID: id, Audio: c.Audio, Recording: id, Weight: 1, Language: c.Language}
	if reference != nil {
		item.Reference = *reference
	}
	return preparer.Prepare(ctx, item, reference != nil)
}

func (c *probeCmd) rules() endpoint.Rules {
	return endpoint.Rules{Deadline: c.Deadline, MaxLateness: c.MaxLateness}
}

// stream runs the session and shows it while it runs.
func (c *probeCmd) stream(ctx context.Context, a *app, target runs.Target, prepared *runs.Prepared) (*record.Session, error) {
	job := target.Job(prepared, 1, c.rules(), softwareVersion())
	job.Trace = c.Trace
	if a.screen != nil {
		line := newTimeline(a.stderr, a.screen, prepared.Turns.List, target.Dialect.Describe())
		observe, stop := line.start()
		job.Observe = observe
		defer stop()
	}
	return streamer.New().Stream(ctx, job)
}

// streamError is an error by which nothing was streamed.
func streamError(err error) error {
	var config *providers.ConfigError
	if errors.As(err, &config) {
		return err
	}
	return input(err, "")
}

// tell prints the result and turns its outcome into an exit code.
func (c *probeCmd) tell(a *app, rec *record.Session, profile normalize.Profile) error {
	found := endpoint.Outcomes(rec, c.rules())
	last := found.Turns[len(found.Turns)-1]
	s, err := scoreTurn(rec, last, profile)
	if err != nil {
		a.warn(err)
	}
	if c.JSON {
		err = a.stdout.json(newProbeResult(rec, found, s))
	} else {
		err = writeSummary(a.stdout, rec, found, s)
	}
	if err != nil {
		return err
	}
	return verdict(rec.Open.Target.Provider, last)
}

// verdict is nil for an outcome that is a valid measurement.
func verdict(provider string, last endpoint.Outcome) error {
	code := exitFailed
	switch {
	case last.Class.Measured():
		return nil
	case last.Class == endpoint.ClientInvalid:
		code = exitClientInvalid
	}
	err := fmt.Errorf("%s: %s", provider, last.Class)
	if last.Reason != "" {
		err = fmt.Errorf("%w: %s", err, last.Reason)
	}
	return &exitError{code, err, advice(last.Class)}
}

// advice is what a user can do about an outcome.
func advice(c endpoint.Class) string {
	switch c {
	case endpoint.ClientInvalid:
		return "this machine was busy; close other programs and measure again"
	case endpoint.NoSpeech:
		return "sttbench vad shows what the detector finds in a file"
	case endpoint.NoAnswer:
		return "a longer --deadline waits longer"
	}
	return ""
}
