package calibrate

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sttbench/record"
	"sttbench/streamer"
)

// Bench is where a plan is carried out: processes beside this one.
type Bench struct {
	// Emulator is the URL of a Deepgram emulator with the plan's script and
	// FinalDelay.
	Emulator string
	// TLS is the client's configuration when the URL is wss; nil is none.
	TLS *tls.Config
	// Echo is the address, host:port, at which [Echo] serves.
	Echo string
}

// Run is what came of a plan, on our side.
type Run struct {
	Plan     Plan
	TLS      bool
	Sessions []*record.Session
	// From and To enclose what counts.
	From, To Sample
	// Floor are the round trips over bare TCP in that time; FloorKernel tells
	// whether their ends are the kernel's stamps.
	Floor       []time.Duration
	FloorKernel bool
}

// connecting is how many streams may connect at the same time.
const connecting = 8

// Run streams until all sessions have ended. Counting begins when the last stream
// has started and some time more. An error means that a stream failed or that the
// machine is too slow even to start them.
func (b Bench) Run(ctx context.Context, p Plan) (*Run, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	bare, err := dialBare(ctx, b.Echo)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			bare.close()
		}
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("bare exchange: %w", err)
	}
	defer bare.close()

	r := &Run{Plan: p, TLS: b.TLS != nil, Sessions: make([]*record.Session, p.Streams)}
	group, ctx := errgroup.WithContext(ctx)
	started := make(chan struct{}, p.Streams)
	group.Go(func() error { return r.count(ctx, bare, started) })
	group.Go(func() error { return b.stream(ctx, r, started) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, s := range r.Sessions {
		if s.Open.T0Mono+int64(s.Sent.Audio) < r.To.Mono {
			return nil, fmt.Errorf("it took more than %v to start %d streams: this machine is too slow for them", p.ramp(), p.Streams)
		}
	}
	return r, nil
}

// stream runs the sessions and tells of each that has started.
func (b Bench) stream(ctx context.Context, r *Run, started chan<- struct{}) error {
	s := streamer.New()
	s.TLS = b.TLS
	pcm := r.Plan.pcm()
	slots := make(chan struct{}, connecting)
	group, ctx := errgroup.WithContext(ctx)
	for i := range r.Plan.Streams {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return cmp.Or(group.Wait(), ctx.Err())
		}
		connected := sync.OnceFunc(func() { <-slots })
		job := r.Plan.job(i, b.Emulator, pcm)
		job.Observe = func(o streamer.Observation) {
			if o.Started != nil {
				started <- struct{}{}
				connected()
			}
		}
		group.Go(func() error {
			defer connected()
			session, err := s.Stream(ctx, job)
			switch {
			case err != nil:
				return err
			case ctx.Err() != nil:
				return ctx.Err()
			case session.Close.How != record.Settled:
				return fmt.Errorf("stream %d of %d: %s in phase %s: %s", i+1, r.Plan.Streams,
					session.Close.How, session.Close.Phase, session.Close.Detail)
			}
			r.Sessions[i] = session
			return nil
		})
	}
	return group.Wait()
}

// count waits for the streams, and then takes the machine's figures around the
// time that counts.
func (r *Run) count(ctx context.Context, bare *bareConn, started <-chan struct{}) error {
	for range r.Plan.Streams {
		select {
		case <-started:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	var err error
	if r.From, err = TakeSample(); err != nil {
		return err
	}
	if r.Floor, r.FloorKernel, err = bare.exchange(ctx, r.Plan.Duration); err != nil {
		return fmt.Errorf("bare exchange: %w", err)
	}
	r.To, err = TakeSample()
	return err
}
