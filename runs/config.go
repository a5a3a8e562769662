package runs

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"sttbench/corpus"
	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/providers/catalogue"
	"sttbench/regular"
	"sttbench/scoring/normalize"
	"sttbench/strictyaml"
	"sttbench/vad"
)

// Config is a benchmark run as its file describes it. Every field has a default
// but the datasets and the targets. API keys are never part of it: a target names
// the environment variable that holds its key.
type Config struct {
	// Name of the run; the file's name without extension by default.
	Name     string          `yaml:"name"`
	Datasets []DatasetConfig `yaml:"datasets,required"`
	Targets  []TargetConfig  `yaml:"targets,required"`
	// Repeats of each item at each target; 1.
	Repeats int `yaml:"repeats"`
	// Turns is "last" (mark the last turn's end, once per item) or "every".
	Turns string `yaml:"turns"`
	// Deadline is how long an answer is waited for; 10s.
	Deadline time.Duration `yaml:"deadline"`
	// NaturalWindow is how long a natural answer may take before it is late; 2s.
	NaturalWindow time.Duration `yaml:"natural_window"`
	// MaxLateness is how late our own audio may be around a turn's end before the
	// turn counts as client_invalid; 40ms.
	MaxLateness time.Duration `yaml:"max_lateness"`
	// Concurrency is the number of sessions at a time; 4.
	Concurrency int `yaml:"concurrency"`
	// ProviderConcurrency limits single providers further.
	ProviderConcurrency map[string]int `yaml:"provider_concurrency"`
	// Seed orders the sessions; 1.
	Seed uint64 `yaml:"seed"`
	// Profile is the normalizer of the word error rate; plain.
	Profile string    `yaml:"profile"`
	VAD     VADConfig `yaml:"vad"`
}

// DatasetConfig chooses items of a manifest.
type DatasetConfig struct {
	// Manifest is a path, relative to the configuration file.
	Manifest string `yaml:"manifest,required"`
	// Tags keeps the items that have one of them; all items by default.
	Tags []string `yaml:"tags"`
	// Limit keeps the first so many; all by default.
	Limit int `yaml:"limit"`
}

// TargetConfig is one row of the result.
type TargetConfig struct {
	// Name is used in paths and tables; the provider's by default.
	Name     string            `yaml:"name"`
	Provider string            `yaml:"provider,required"`
	Model    string            `yaml:"model"`
	Language string            `yaml:"language"`
	Endpoint string            `yaml:"endpoint"`
	Params   map[string]string `yaml:"params"`
	// Force is "auto" (force where the provider can be forced) or "off".
	Force string `yaml:"force"`
	// SampleRate in Hz; the provider's preferred rate by default.
	SampleRate int `yaml:"sample_rate"`
	// Chunk is the audio of one paced write; 20ms.
	Chunk time.Duration `yaml:"chunk"`
	// KeyVar is the environment variable of the API key; the catalogue's.
	KeyVar string `yaml:"key_var"`
	// Tags keeps the items that have one of them; all items by default.
	Tags []string `yaml:"tags"`
}

// VADConfig are the settings of the voice activity detector.
type VADConfig struct {
	Threshold  float64       `yaml:"threshold"`
	MinSilence time.Duration `yaml:"min_silence"`
	MinSpeech  time.Duration `yaml:"min_speech"`
}

// ErrConfig is matched by every mistake in a configuration.
var ErrConfig = errors.New("configuration")

type configError struct{ err error }

func (e *configError) Error() string        { return e.err.Error() }
func (e *configError) Unwrap() error        { return e.err }
func (e *configError) Is(target error) bool { return target == ErrConfig }

func defaults(path string) Config {
	p := vad.DefaultParams()
	base := filepath.Base(path)
	return Config{
		Name: strings.TrimSuffix(base, filepath.Ext(base)), Repeats: 1, Turns: "last",
		Deadline: endpoint.DefaultDeadline, NaturalWindow: endpoint.DefaultNaturalWindow,
		MaxLateness: endpoint.DefaultMaxLateness,
		Concurrency: 4, Seed: 1, Profile: "plain",
		VAD: VADConfig{p.Threshold, p.MinSilence, p.MinSpeech},
	}
}

// LoadConfig reads and checks a configuration. Manifest paths become absolute.
// The error matches [ErrConfig] and names file, line and column where it can.
func LoadConfig(path string) (*Config, error) {
	data, err := regular.ReadFile(path, strictyaml.MaxSize)
	if err != nil {
		return nil, &configError{fmt.Errorf("%s: %w", path, err)}
	}
	c := defaults(path)
	if err := strictyaml.Decode(path, data, &c); err != nil {
		return nil, &configError{err}
	}
	if c.NaturalWindow == endpoint.DefaultNaturalWindow {
		c.NaturalWindow = min(c.NaturalWindow, c.Deadline) // a default must not be in the way
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, &configError{err}
	}
	for i := range c.Datasets {
		if m := &c.Datasets[i].Manifest; !filepath.IsAbs(*m) {
			*m = filepath.Join(dir, *m)
		}
	}
	for i := range c.Targets {
		t := &c.Targets[i]
		if t.Name == "" {
			t.Name = t.Provider
		}
		if t.Force == "" {
			t.Force = "auto"
		}
	}
	if err := c.check(); err != nil {
		return nil, &configError{fmt.Errorf("%s: %w", path, err)}
	}
	return &c, nil
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

func (c *Config) check() error {
	switch {
	case len(c.Datasets) == 0:
		return errors.New("datasets: want at least one")
	case len(c.Targets) == 0:
		return errors.New("targets: want at least one")
	case c.Repeats < 1 || c.Repeats > 10_000:
		return fmt.Errorf("repeats: %d: want 1 to 10000", c.Repeats)
	case c.Turns != "last" && c.Turns != "every":
		return fmt.Errorf("turns: %q: want last or every", c.Turns)
	case c.Deadline < 100*time.Millisecond || c.Deadline > 5*time.Minute:
		return fmt.Errorf("deadline: %v: want 100ms to 5m", c.Deadline)
	case c.NaturalWindow <= 0 || c.NaturalWindow > c.Deadline:
		return fmt.Errorf("natural_window: %v: want more than 0 and at most the deadline of %v", c.NaturalWindow, c.Deadline)
	case c.MaxLateness <= 0:
		return fmt.Errorf("max_lateness: %v: want more than 0", c.MaxLateness)
	case c.Concurrency < 1 || c.Concurrency > 1000:
		return fmt.Errorf("concurrency: %d: want 1 to 1000", c.Concurrency)
	}
	if _, err := normalize.Lookup(c.Profile); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if err := c.vadParams().Validate(); err != nil {
		return fmt.Errorf("vad: %w", err)
	}
	for name, n := range c.ProviderConcurrency {
		if _, err := catalogue.Lookup(name); err != nil {
			return fmt.Errorf("provider_concurrency: %w", err)
		}
		if n < 1 {
			return fmt.Errorf("provider_concurrency: %s: %d: want at least 1", name, n)
		}
	}
	seen := map[string]bool{}
	for i, t := range c.Targets {
		where := fmt.Sprintf("targets[%d]", i)
		if !safeName.MatchString(t.Name) {
			return fmt.Errorf("%s: name %q: want letters, digits, '.', '_', '-'", where, t.Name)
		}
		if seen[strings.ToLower(t.Name)] {
			return fmt.Errorf("%s: name %q is taken by another target", where, t.Name)
		}
		seen[strings.ToLower(t.Name)] = true
		if t.Force != "auto" && t.Force != "off" {
			return fmt.Errorf("%s (%s): force: %q: want auto or off", where, t.Name, t.Force)
		}
		if _, err := catalogue.Lookup(t.Provider); err != nil {
			return fmt.Errorf("%s (%s): %w", where, t.Name, err)
		}
	}
	return nil
}

func (c *Config) vadParams() vad.Params {
	return vad.Params{Threshold: c.VAD.Threshold, MinSilence: c.VAD.MinSilence, MinSpeech: c.VAD.MinSpeech}
}

func (c *Config) rules() endpoint.Rules {
	return endpoint.Rules{Deadline: c.Deadline, NaturalWindow: c.NaturalWindow, MaxLateness: c.MaxLateness}
}

// Resolve makes the configured targets. env reads an environment variable. The
// error is a *[providers.ConfigError].
func (c *Config) Resolve(env func(string) string) ([]Target, error) {
	var targets []Target
	for _, t := range c.Targets {
		entry, err := catalogue.Lookup(t.Provider)
		if err != nil {
			return nil, err
		}
		keyVar := t.KeyVar
		if keyVar == "" {
			keyVar = entry.Dialect.Describe().KeyVar
		}
		target := Target{
			Name: t.Name, Dialect: entry.Dialect, Model: t.Model, Language: t.Language, Endpoint: t.Endpoint,
			Params: t.Params, Natural: t.Force == "off", EveryTurn: c.Turns == "every", SampleRate: t.SampleRate,
			Chunk: t.Chunk, Deadline: c.Deadline,
		}
		if keyVar != "" {
			target.Key = providers.NewSecret(env(keyVar))
		}
		if err := target.Check(); err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Items loads the chosen items of all datasets. Ids are unique in a run, because
// they name its files.
func (c *Config) Items() ([]corpus.Item, error) {
	var items []corpus.Item
	from := map[string]string{}
	for _, d := range c.Datasets {
		set, err := corpus.Load(d.Manifest)
		if err != nil {
			return nil, err
		}
		n := 0
		for _, it := range set.Items {
			if !hasTag(it.Tags, d.Tags) || (d.Limit > 0 && n == d.Limit) {
				continue
			}
			n++
			key := strings.ToLower(it.ID)
			if other, taken := from[key]; taken {
				return nil, &configError{fmt.Errorf("item %s is in %s and in %s: ids must differ within a run", it.ID, other, d.Manifest)}
			}
			from[key] = d.Manifest
			items = append(items, it)
		}
		if n == 0 {
			return nil, &configError{fmt.Errorf("%s: no item has one of the tags %v", d.Manifest, d.Tags)}
		}
	}
	return items, nil
}

// hasTag tells whether an item is wanted: it is when nothing is asked for.
func hasTag(has, want []string) bool {
	return len(want) == 0 || slices.ContainsFunc(want, func(t string) bool { return slices.Contains(has, t) })
}

// yaml is the effective configuration as it is kept in the run directory.
func (c *Config) yaml() ([]byte, error) { return yaml.Marshal(c) }
