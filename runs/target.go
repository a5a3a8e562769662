package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
	"sttbench/streamer"
)

// Target is a provider with everything that decides its answers, under one name.
type Target struct {
	Name       string
	Dialect    providers.Dialect
	Model      string
	Language   string
	Endpoint   string
	Params     map[string]string
	Natural    bool // leave endpointing to the provider
	EveryTurn  bool
	SampleRate int // Hz; 0 is the provider's preferred rate
	Chunk      time.Duration
	Deadline   time.Duration
	Key        providers.Secret
}

// Config is what the target's dialect is opened with.
func (t Target) Config() providers.Config {
	d := t.Dialect.Describe()
	rate := t.SampleRate
	if rate == 0 {
		rate = d.SampleRates[0]
	}
	return providers.Config{Endpoint: t.Endpoint, Model: t.Model, Language: t.Language, SampleRate: rate,
		Forced: t.forced(d), Params: t.Params, Key: t.Key}
}

func (t Target) forced(d providers.Description) bool { return d.CanForce && !t.Natural }

// Check opens the dialect once, so that a mistake in the configuration is told
// before anything is sent. The error is a *[providers.ConfigError].
func (t Target) Check() error {
	d := t.Dialect.Describe()
	if t.SampleRate != 0 && !slices.Contains(d.SampleRates, t.SampleRate) {
		return &providers.ConfigError{Provider: d.Name, Field: "sample rate",
			Problem: fmt.Sprintf("%d Hz is not accepted", t.SampleRate), Hint: fmt.Sprintf("one of %v", d.SampleRates)}
	}
	_, err := t.Dialect.Open(t.Config(), t.rand("check"))
	return err
}

// Job is the session that streams an item to the target.
func (t Target) Job(p *Prepared, repeat int, rules endpoint.Rules, software string) streamer.Job {
	d := t.Dialect.Describe()
	cfg := t.Config()
	name := fmt.Sprintf("%s/%s.%d", t.Name, p.Item.ID, repeat)
	open := record.Open{
		Session: name, Item: p.Item, Repeat: repeat, Software: software,
		Target: record.Target{
			Name: t.Name, Provider: d.Name, Dialect: d.Version, Model: t.model(d), Language: t.Language,
			Endpoint: shownEndpoint(t.Endpoint, d), Params: t.Params, Forced: cfg.Forced, EveryTurn: t.EveryTurn,
			Continuous: d.Continuous, SampleRate: cfg.SampleRate, Chunk: t.Chunk, Deadline: t.Deadline,
		},
	}
	open.Fingerprint = fingerprint(open.Target, p.Item.Hash, p.Turns)
	return streamer.Job{Open: open, Turns: p.Turns, PCM: p.PCM(cfg.SampleRate), Dialect: t.Dialect, Config: cfg,
		Rules: rules, Rand: t.rand(name)}
}

func (t Target) model(d providers.Description) string {
	if t.Model == "" && len(d.Models) > 0 {
		return d.Models[0].ID
	}
	return t.Model
}

// rand gives reproducible request ids that differ between sessions.
func (t Target) rand(session string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(session))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(len(t.Name))))
}

// shownEndpoint is the URL as it may be stored: user information and queries can
// hold secrets.
func shownEndpoint(endpoint string, d providers.Description) string {
	if endpoint == "" {
		endpoint = d.Endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// fingerprint hashes what may change an answer.
func fingerprint(t record.Target, item string, turns record.Turns) string {
	t.Name = "" // two names for the same thing measure the same
	b, err := json.Marshal(struct {
		Target record.Target
		Item   string
		Turns  record.Turns
	}{t, item, turns})
	if err != nil {
		panic(err) // plain data always marshals
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
