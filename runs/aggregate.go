package runs

import (
	"fmt"
	"maps"
	"slices"

	"sttbench/endpoint"
	"sttbench/record"
	"sttbench/scoring/normalize"
	"sttbench/scoring/stat"
	"sttbench/scoring/wer"
)

// Aggregate is what a run came to. It is aggregate.json, and the only thing that
// reports are made from.
type Aggregate struct {
	Name     string          `json:"name"`
	Profile  string          `json:"profile"`
	VADModel string          `json:"vad_model"`
	VAD      string          `json:"vad"`
	Turns    string          `json:"turns"` // last or every
	Deadline endpoint.Millis `json:"deadline_ms"`
	Window   endpoint.Millis `json:"natural_window_ms"`
	// Harness is the error of our own times on the run's machine, nil where it was
	// not calibrated.
	Harness  *Harness          `json:"harness"`
	Datasets []DatasetSum      `json:"datasets"`
	Targets  []TargetAggregate `json:"targets"`
}

// DatasetSum says how much of a dataset was in the run.
type DatasetSum struct {
	Name  string          `json:"name"`
	Items int             `json:"items"`
	Audio endpoint.Millis `json:"audio_ms"`
}

// TargetAggregate sums up one target. The counts of Classes add up to Scheduled.
type TargetAggregate struct {
	Name      string                 `json:"name"`
	Provider  string                 `json:"provider"`
	Model     string                 `json:"model"`
	Endpoint  string                 `json:"endpoint"`
	Dialect   string                 `json:"dialect"`
	Forced    bool                   `json:"forced"`
	Stamps    string                 `json:"stamps"`
	Sessions  int                    `json:"sessions"`
	NotRun    int                    `json:"not_run"`
	Scheduled int                    `json:"scheduled"` // turns
	Classes   map[endpoint.Class]int `json:"classes"`
	// Acks counts how forced endpoints were acknowledged, over the turns in which
	// one was sent and the session lived on.
	Acks       map[endpoint.Ack]int `json:"acks"`
	TTF        Latency              `json:"ttf_ms"`
	TTFFirst   Latency              `json:"ttf_first_ms"`
	TTFP       Latency              `json:"ttfp_ms"`
	Ack        Latency              `json:"ack_ms"`
	Wait       Latency              `json:"wait_ms"`
	FromSE     Latency              `json:"ttf_from_se_ms"`
	First      Latency              `json:"first_partial_ms"`
	Hangover   Latency              `json:"hangover_ms"`
	ForceDelay Latency              `json:"force_delay_ms"`
	Connect    Latency              `json:"connect_ms"`
	RTT        Latency              `json:"rtt_ms"`
	// LateP99 and LateMax are the worst of the sessions' own: what our pacing may
	// have added.
	LateP99    endpoint.Millis `json:"late_p99_ms"`
	LateMax    endpoint.Millis `json:"late_max_ms"`
	Final      Accuracy        `json:"final"`
	FirstFinal Accuracy        `json:"first_final"`
	Partial    Accuracy        `json:"partial"`
	// Tail is the share of the last three reference words that were missed.
	TailWords  int      `json:"tail_words"`
	TailMissed int      `json:"tail_missed"`
	TailError  *float64 `json:"tail_error"`
	// Counts over all sessions.
	Rewritten         int `json:"rewritten_words"`
	Revised           int `json:"revised_finals"`
	UnsolicitedFinals int `json:"unsolicited_finals"`
	UnsolicitedAcks   int `json:"unsolicited_acks"`
	DecodeErrors      int `json:"decode_errors"`
	// NotScored counts sessions whose text counts but could not be scored.
	NotScored int `json:"not_scored,omitempty"`
	// Reasons counts why turns failed, by the provider's or system's word.
	Reasons map[string]int `json:"reasons,omitempty"`
}

// Latency sums up one latency over turns. Censored turns are in N: of them it is
// only known that they took longer than a bound.
type Latency struct {
	N        int       `json:"n"`
	Censored int       `json:"censored"`
	P50      *Quantile `json:"p50"`
	P90      *Quantile `json:"p90"`
	P95      *Quantile `json:"p95"`
	P99      *Quantile `json:"p99"`
	Mean     *Quantile `json:"mean"`
}

// Quantile is an estimate with its 95 % confidence interval, where the sample is
// large enough for one.
type Quantile struct {
	stat.Value
	Lo *stat.Value `json:"lo"`
	Hi *stat.Value `json:"hi"`
	// Need is how many recordings an interval would take; 0 where there is one.
	Need int `json:"need,omitempty"`
}

// Accuracy is a word error rate over items.
type Accuracy struct {
	wer.Counts
	Items int `json:"items"`
	// WER is errors over reference words, Weighted the mean of the items' rates
	// weighted by audio duration; nil without reference words.
	WER      *float64 `json:"wer"`
	Weighted *float64 `json:"weighted"`
	// Lo and Hi bound WER at 95 % (bootstrap over recordings); nil where there are
	// too few.
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
	// Recordings is the number of independent recordings behind the interval.
	Recordings int `json:"recordings"`
}

// aggregation collects a run session by session.
type aggregation struct {
	cfg     *Config
	result  *Aggregate
	targets []*targetSum
}

// targetSum holds the samples of one target.
type targetSum struct {
	agg     TargetAggregate
	samples map[string]map[string][]stat.Value // by latency and recording
	texts   [3]map[string]*wer.Total           // final, first final, partial: by recording
}

func newAggregation(cfg *Config, profile normalize.Profile, items []record.Item) *aggregation {
	a := &aggregation{cfg: cfg, result: &Aggregate{
		Name: cfg.Name, Profile: profile.String(), VAD: vadParams(cfg.vadParams()), Turns: cfg.Turns,
		Deadline: endpoint.ToMillis(cfg.Deadline), Window: endpoint.ToMillis(cfg.NaturalWindow),
	}}
	for _, it := range items {
		i := slices.IndexFunc(a.result.Datasets, func(d DatasetSum) bool { return d.Name == it.Dataset })
		if i < 0 {
			a.result.Datasets = append(a.result.Datasets, DatasetSum{Name: it.Dataset})
			i = len(a.result.Datasets) - 1
		}
		a.result.Datasets[i].Items++
		a.result.Datasets[i].Audio += endpoint.ToMillis(it.Duration)
	}
	for _, t := range cfg.Targets {
		s := &targetSum{samples: map[string]map[string][]stat.Value{}, agg: TargetAggregate{
			Name: t.Name, Provider: t.Provider, Model: t.Model, Endpoint: t.Endpoint, Forced: t.Force != "off",
			Classes: map[endpoint.Class]int{}, Acks: map[endpoint.Ack]int{}, Reasons: map[string]int{},
		}}
		for i := range s.texts {
			s.texts[i] = map[string]*wer.Total{}
		}
		a.targets = append(a.targets, s)
	}
	return a
}

// add takes one session in.
func (a *aggregation) add(target int, s *record.Session, lines []OutcomeLine, score *ScoreLine) {
	t := a.targets[target]
	t.agg.Sessions++
	if s.Close.How == record.Cancelled {
		t.agg.NotRun++
	} else {
		t.describe(s)
		a.result.VADModel = s.Turns.Model
	}
	for i := range lines {
		t.turn(s.Open.Item.Recording, &lines[i].Outcome)
	}
	c := lines[len(lines)-1].Session
	t.agg.LateP99, t.agg.LateMax = max(t.agg.LateP99, c.LateP99), max(t.agg.LateMax, c.LateMax)
	t.agg.Rewritten += c.Rewritten
	t.agg.Revised += c.Revised
	t.agg.UnsolicitedFinals += c.UnsolicitedFinals
	t.agg.UnsolicitedAcks += c.UnsolicitedAcks
	t.agg.DecodeErrors += c.DecodeErrors
	if c.NotScored != "" {
		t.agg.NotScored++
		t.agg.Reasons["not scored: "+c.NotScored]++
	}
	if score != nil {
		t.score(s, score)
	}
}

// describe takes over what only a session that ran can tell.
func (t *targetSum) describe(s *record.Session) {
	o := s.Open.Target
	t.agg.Model, t.agg.Endpoint, t.agg.Dialect, t.agg.Forced, t.agg.Stamps = o.Model, o.Endpoint, o.Dialect, o.Forced, s.Connect.Stamps
	if s.Connect.Start < 0 {
		t.sample("connect", s.Open.Session, endpoint.ToMillis(-s.Connect.Start), false)
	}
	if s.Connect.RTT > 0 {
		t.sample("rtt", s.Open.Session, endpoint.ToMillis(s.Connect.RTT), false)
	}
}

func (t *targetSum) sample(name, recording string, v endpoint.Millis, censored bool) {
	if t.samples[name] == nil {
		t.samples[name] = map[string][]stat.Value{}
	}
	t.samples[name][recording] = append(t.samples[name][recording], stat.Value{X: float64(v), Censored: censored})
}

// turn counts one turn and takes its latencies as samples.
func (t *targetSum) turn(recording string, o *endpoint.Outcome) {
	t.agg.Scheduled++
	t.agg.Classes[o.Class]++
	if o.Forced && o.Class.Asked() {
		t.agg.Acks[o.Ack]++
	}
	if !o.Class.Measured() && o.Reason != "" {
		t.agg.Reasons[string(o.Class)+": "+o.Reason]++
	}
	for _, l := range []struct {
		name string
		v    *endpoint.Millis
	}{
		{"ttf", o.TTF}, {"ttf_first", o.TTFFirst}, {"ttfp", o.TTFP}, {"ack", o.AckMS}, {"wait", o.Wait},
		{"from_se", o.TTFFromSE}, {"first", o.FirstPartial}, {"hangover", o.Hangover}, {"force_delay", o.ForceDelay},
	} {
		if l.v != nil {
			t.sample(l.name, recording, *l.v, false)
		}
	}
	if o.CensoredAt == nil {
		return
	}
	// What did not come is known to be later than the bound.
	t.sample("ttf", recording, *o.CensoredAt, true)
	t.sample("wait", recording, *o.CensoredAt, true)
	if o.ForceDelay != nil && o.Hangover != nil {
		t.sample("from_se", recording, *o.CensoredAt+*o.ForceDelay+*o.Hangover, true)
	}
}

func (t *targetSum) score(s *record.Session, line *ScoreLine) {
	add := func(i int, c *wer.Counts) {
		if c == nil {
			return
		}
		total := t.texts[i][s.Open.Item.Recording]
		if total == nil {
			total = new(wer.Total)
			t.texts[i][s.Open.Item.Recording] = total
		}
		if err := total.Add(*c, s.Open.Item.Duration); err != nil {
			panic(err) // a decoded item has a duration
		}
	}
	add(0, &line.Final.Counts)
	add(1, line.FirstFinal)
	add(2, line.Partial)
	t.agg.TailWords += line.Tail.RefWords
	t.agg.TailMissed += line.Tail.Missed
}

// finish computes the figures and checks that the classes add up.
func (a *aggregation) finish() (*Aggregate, error) {
	for _, t := range a.targets {
		sum := 0
		for _, n := range t.agg.Classes {
			sum += n
		}
		if sum != t.agg.Scheduled {
			return nil, fmt.Errorf("target %s: %d turns in classes, %d scheduled", t.agg.Name, sum, t.agg.Scheduled)
		}
		if err := t.latencies(a.cfg.Seed); err != nil {
			return nil, fmt.Errorf("target %s: %w", t.agg.Name, err)
		}
		for i, into := range []*Accuracy{&t.agg.Final, &t.agg.FirstFinal, &t.agg.Partial} {
			acc, err := accuracy(t.texts[i], a.cfg.Seed)
			if err != nil {
				return nil, fmt.Errorf("target %s: %w", t.agg.Name, err)
			}
			*into = acc
		}
		if t.agg.TailWords > 0 {
			rate := float64(t.agg.TailMissed) / float64(t.agg.TailWords)
			t.agg.TailError = &rate
		}
		a.result.Targets = append(a.result.Targets, t.agg)
	}
	return a.result, nil
}

func (t *targetSum) latencies(seed uint64) error {
	for _, l := range []struct {
		name string
		into *Latency
	}{
		{"ttf", &t.agg.TTF}, {"ttf_first", &t.agg.TTFFirst}, {"ttfp", &t.agg.TTFP}, {"ack", &t.agg.Ack},
		{"wait", &t.agg.Wait}, {"from_se", &t.agg.FromSE}, {"first", &t.agg.First}, {"hangover", &t.agg.Hangover},
		{"force_delay", &t.agg.ForceDelay}, {"connect", &t.agg.Connect}, {"rtt", &t.agg.RTT},
	} {
		v, err := latency(t.samples[l.name], seed)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		*l.into = v
	}
	return nil
}

// latency sums up the values of one latency, given by recording.
func latency(by map[string][]stat.Value, seed uint64) (Latency, error) {
	var sample []stat.Value
	var clusters [][]stat.Value
	for _, name := range slices.Sorted(maps.Keys(by)) {
		sample = append(sample, by[name]...)
		clusters = append(clusters, by[name])
	}
	l := Latency{N: len(sample)}
	if l.N == 0 {
		return l, nil
	}
	for _, v := range sample {
		if v.Censored {
			l.Censored++
		}
	}
	for _, q := range []struct {
		p    float64
		into **Quantile
	}{{.5, &l.P50}, {.9, &l.P90}, {.95, &l.P95}, {.99, &l.P99}} {
		v, err := stat.Quantile(sample, q.p)
		if err != nil {
			return l, err
		}
		*q.into = &Quantile{Value: v}
		if err := (*q.into).bound(sample, clusters, q.p, seed); err != nil {
			return l, err
		}
	}
	mean, err := stat.Mean(sample)
	if err != nil {
		return l, err
	}
	l.Mean = &Quantile{Value: mean}
	return l, nil
}

// bound adds the interval: order statistics where each recording gave one value,
// else a bootstrap over recordings, because values of one recording are not
// independent.
func (q *Quantile) bound(sample []stat.Value, clusters [][]stat.Value, p float64, seed uint64) error {
	var ci stat.Interval
	var err error
	if len(sample) == len(clusters) {
		ci, err = stat.QuantileInterval(sample, p, 0.95)
	} else {
		ci, err = stat.ClusterQuantileInterval(clusters, p, 0.95, seed)
	}
	if err != nil {
		return err
	}
	if ci.OK() {
		q.Lo, q.Hi = &ci.Lo, &ci.Hi
		return nil
	}
	for _, w := range ci.Warnings {
		q.Need = max(q.Need, w.Need)
	}
	return nil
}

func accuracy(by map[string]*wer.Total, seed uint64) (Accuracy, error) {
	var recordings []wer.Total
	var all wer.Total
	for _, name := range slices.Sorted(maps.Keys(by)) {
		recordings = append(recordings, *by[name])
		all.Merge(*by[name])
	}
	a := Accuracy{Counts: all.Counts, Items: all.Items, Recordings: len(recordings)}
	rate, ok := all.Pooled()
	if !ok || all.RefWords == 0 {
		return a, nil
	}
	a.WER = &rate
	if weighted, ok := all.Weighted(); ok {
		a.Weighted = &weighted
	}
	ci, err := wer.PooledInterval(recordings, seed)
	if err != nil {
		return a, err
	}
	if ci.OK() {
		a.Lo, a.Hi = &ci.Lo.X, &ci.Hi.X
	}
	return a, nil
}
