package runs

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sttbench/corpus"
	"sttbench/endpoint"
	"sttbench/record"
	"sttbench/streamer"
)

// Options are what a run needs beside its configuration.
type Options struct {
	Dir      string
	Resume   bool
	Preparer *Preparer
	Env      func(string) string // reads environment variables
	Software string              // version of sttbench, for the records
	// Harness is this machine's calibration, nil where there is none.
	Harness *Harness
	// Progress, when set, is told after each step. It is called from one goroutine
	// at a time.
	Progress func(Progress)
}

// Progress is how far a run has come.
type Progress struct {
	// Prepared and Items count the items that are decoded and all items.
	Prepared, Items int
	// Done and Sessions count finished sessions, resumed ones included, and all
	// sessions. Sessions is 0 while items are prepared.
	Done, Sessions int
	// Remaining is the audio that is still to be streamed, divided by the
	// concurrency that the limits allow: a lower bound of the time left.
	Remaining time.Duration
	// Class of the last turn of the session that just ended; "" otherwise.
	Class   endpoint.Class
	Session string
}

// session is one planned session.
type session struct {
	target Target
	item   *Prepared
	repeat int
}

// Run streams all sessions of a run that are not recorded yet and computes the
// results. When ctx ends it stops the sessions in flight, keeps those that are
// finished, and computes the results of what is there, with the error of ctx.
// Other errors match [ErrConfig] or are a *[DirError], *[corpus.AudioError],
// *[corpus.ManifestError] or *[providers.ConfigError].
func Run(ctx context.Context, cfg *Config, opt Options) (*Aggregate, error) {
	targets, err := cfg.Resolve(opt.Env)
	if err != nil {
		return nil, err
	}
	items, err := cfg.Items()
	if err != nil {
		return nil, err
	}
	d, err := create(opt.Dir, cfg, opt.Resume)
	if err != nil {
		return nil, err
	}
	defer d.close()
	progress := func(p Progress) {
		if opt.Progress != nil {
			opt.Progress(p)
		}
	}
	opt.Preparer.Params = cfg.vadParams()
	prepared, err := prepare(ctx, items, opt.Preparer, progress)
	if err != nil {
		return nil, err
	}
	if err := d.keepInputs(prepared); err != nil {
		return nil, err
	}
	if err := d.keepHarness(opt.Harness); err != nil {
		return nil, err
	}
	plan := cfg.plan(targets, prepared)
	if err := stream(ctx, d, cfg, plan, opt, progress); err != nil {
		return nil, err
	}
	agg, err := compute(context.WithoutCancel(ctx), d, cfg) // what is there is worth having
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return agg, err
}

// prepare decodes all items and finds their turns before anything is measured.
func prepare(ctx context.Context, items []corpus.Item, p *Preparer, progress func(Progress)) ([]*Prepared, error) {
	var prepared []*Prepared
	for i, it := range items {
		one, err := p.Prepare(ctx, it, true)
		if err != nil {
			return nil, err
		}
		prepared = append(prepared, one)
		progress(Progress{Prepared: i + 1, Items: len(items)})
	}
	return prepared, nil
}

// keepInputs stores what the sessions are made from, so that they can be judged
// without the audio. A resumed run must have the same.
func (d *dir) keepInputs(prepared []*Prepared) error {
	var items []record.Item
	var turns []turnsLine
	for _, p := range prepared {
		items = append(items, p.Item)
		turns = append(turns, turnsLine{p.Item.ID, p.Turns})
	}
	if err := d.sameItems(items); err != nil {
		return err
	}
	if err := d.sameTurns(turns); err != nil {
		return err
	}
	if err := putLines(d, itemsFile, items); err != nil {
		return err
	}
	return putLines(d, turnsFile, turns)
}

// plan lists the sessions in the order in which they are started: shuffled over
// targets, items and repeats by the seed, so that a mood of the network or of a
// provider hits all targets alike.
func (c *Config) plan(targets []Target, prepared []*Prepared) []session {
	var plan []session
	for repeat := 1; repeat <= c.Repeats; repeat++ {
		for _, p := range prepared {
			for i, t := range targets {
				if hasTag(p.Item.Tags, c.Targets[i].Tags) {
					plan = append(plan, session{t, p, repeat})
				}
			}
		}
	}
	rnd := rand.New(rand.NewPCG(c.Seed, 0x5e55))
	rnd.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	return plan
}

// stream runs the sessions that are not recorded yet, as many at a time as the
// limits allow. A full provider never holds back a session of another.
func stream(ctx context.Context, d *dir, cfg *Config, plan []session, opt Options, progress func(Progress)) error {
	var waiting []session
	for _, s := range plan {
		if !d.has(s.target.Name, s.item.Item.ID, s.repeat) {
			waiting = append(waiting, s)
		}
	}
	for _, s := range waiting {
		s.item.PCM(s.target.Config().SampleRate) // resample now, not beside a session
	}
	str := streamer.New()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	type ended struct {
		session session
		rec     *record.Session
		err     error
	}
	done := make(chan ended)
	busy, total := map[string]int{}, 0
	var failed error
	var wg sync.WaitGroup
	finished := len(plan) - len(waiting)
	report := func(e *ended) {
		p := Progress{Done: finished, Sessions: len(plan), Remaining: remaining(cfg, waiting)}
		if e != nil && e.rec != nil {
			turns := endpoint.Outcomes(e.rec, cfg.rules()).Turns
			p.Class, p.Session = turns[len(turns)-1].Class, e.rec.Open.Session
		}
		progress(p)
	}
	report(nil)
	for total > 0 || (len(waiting) > 0 && ctx.Err() == nil) {
		for ctx.Err() == nil && total < cfg.Concurrency {
			i := next(cfg, waiting, busy)
			if i < 0 {
				break
			}
			s := waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			busy[s.provider()]++
			total++
			wg.Go(func() {
				rec, err := str.Stream(ctx, s.target.Job(s.item, s.repeat, cfg.rules(), opt.Software))
				done <- ended{s, rec, err}
			})
		}
		e := <-done
		busy[e.session.provider()]--
		total--
		if e.err == nil && e.rec.Close.How != record.Cancelled {
			// A cancelled session is not kept: resuming measures it again.
			e.err = d.putSession(e.rec)
			finished++
			report(&e)
		}
		if e.err != nil && failed == nil {
			failed = e.err
			stop(e.err) // what cannot be kept need not be measured
		}
	}
	wg.Wait()
	return failed
}

func (s session) provider() string { return s.target.Dialect.Describe().Name }

// next finds the first waiting session whose provider has room.
func next(cfg *Config, waiting []session, busy map[string]int) int {
	for i, s := range waiting {
		name := s.provider()
		if limit, ok := cfg.ProviderConcurrency[name]; !ok || busy[name] < limit {
			return i
		}
	}
	return -1
}

// remaining is the least time that the waiting sessions take.
func remaining(cfg *Config, waiting []session) time.Duration {
	var all time.Duration
	by := map[string]time.Duration{}
	for _, s := range waiting {
		all += s.item.Item.Duration
		by[s.provider()] += s.item.Item.Duration
	}
	least := all / time.Duration(cfg.Concurrency)
	for name, d := range by {
		if limit, ok := cfg.ProviderConcurrency[name]; ok {
			least = max(least, d/time.Duration(limit))
		}
	}
	return least
}
