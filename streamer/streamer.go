package streamer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
)

// Streamer streams items. It is safe for concurrent use; all its sessions share
// one clock, so that their stamps can be compared.
type Streamer struct {
	// TLS is the configuration for wss and https; nil is the system's.
	TLS *tls.Config
	// DialContext opens the TCP connection; New sets a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	clock clock

	mu     sync.Mutex
	seen   map[string]time.Duration // address → last connection
	pacer  *pacer                   // runs while sessions do, where there is one
	canary *canary                  // runs while sessions do
	users  int                      // sessions with a socket
	phases map[*run]time.Duration   // of the running sessions
	// The five fields above are guarded by mu.
}

// New makes a Streamer.
func New() *Streamer {
	return &Streamer{DialContext: new(net.Dialer).DialContext, clock: newClock(), seen: make(map[string]time.Duration), phases: make(map[*run]time.Duration)}
}

// enter starts what watches and paces the sessions with the first of them. The
// pacer is nil where a session must wait by itself.
func (s *Streamer) enter() (*pacer, *canary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		s.pacer, s.canary = newPacer(s.clock), newCanary(s.clock)
	}
	s.users++
	return s.pacer, s.canary
}

// leave ends a session's use of them; the last one stops them.
func (s *Streamer) leave(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.phases, r)
	if s.users--; s.users > 0 {
		return
	}
	if s.pacer != nil {
		s.pacer.stop()
	}
	s.canary.end()
	s.pacer, s.canary = nil, nil
}

// start chooses t0 of a session that is ready: the next instant at which the
// other sessions leave the pacer the most room.
func (s *Streamer) start(r *run) time.Duration {
	now := s.clock.now()
	if r.pacer == nil {
		return now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	phase := now % phaseCycle
	if len(s.phases) > 0 {
		phase = emptiest(slices.Collect(maps.Values(s.phases)))
	}
	s.phases[r] = phase
	return following(now, phase)
}

// warmFor is how long a connection leaves an address warm: resolver caches, TLS
// tickets and a provider's own pools commonly live for minutes.
const warmFor = 5 * time.Minute

// warm tells whether the address was reached lately, and notes that it is now.
func (s *Streamer) warm(address string) bool {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.seen[address]
	s.seen[address] = now
	return ok && now-last < warmFor
}

// Job is one session to run.
type Job struct {
	// Open is copied into the record; its target fields (forced, every turn, chunk,
	// deadline, sample rate) steer the session. Stream sets the t0 fields.
	Open  record.Open
	Turns record.Turns
	// PCM is the item's audio: 16 bit little endian mono at Config.SampleRate.
	PCM     []byte
	Dialect providers.Dialect
	Config  providers.Config
	// Rules decide when the session has said all that it will.
	Rules endpoint.Rules
	// Trace keeps every audio write in the record.
	Trace bool
	// Rand gives the dialect its random ids; nil takes a fixed seed.
	Rand *rand.Rand
	// Observe, when set, is told of each event and mark as it happens. It runs on
	// the measuring goroutines and must return at once.
	Observe func(Observation)
	// ConnectTimeout bounds everything before t0; 10 s when zero.
	ConnectTimeout time.Duration
	// FinishTimeout bounds the graceful end; 3 s when zero.
	FinishTimeout time.Duration
}

// Observation is one thing that happened; exactly one field is set.
type Observation struct {
	Event *record.Event
	Mark  *record.Mark
	// Started is set when audio begins to flow.
	Started *record.Connect
}

const (
	defaultChunk   = 20 * time.Millisecond
	connectTimeout = 10 * time.Second
	finishTimeout  = 3 * time.Second
	writeTimeout   = 10 * time.Second
)

// Stream runs one session to its end. The record is complete whatever happened
// on the way; the error is a *[providers.ConfigError] or says what is wrong with
// the job, and then nothing was sent.
func (s *Streamer) Stream(ctx context.Context, job Job) (*record.Session, error) {
	if err := job.check(); err != nil {
		return nil, err
	}
	rnd := job.Rand
	if rnd == nil {
		rnd = rand.New(rand.NewPCG(1, 2))
	}
	dialect, err := job.Dialect.Open(job.Config, rnd)
	if err != nil {
		return nil, err
	}
	r := &run{streamer: s, job: &job, about: job.Dialect.Describe(), dialect: dialect, secret: newRedactor(job.Config.Key)}
	return r.session(ctx), nil
}

// check refuses jobs that could not be measured, and fills in defaults.
func (j *Job) check() error {
	d := j.Dialect.Describe()
	t := &j.Open.Target
	if t.Chunk == 0 {
		t.Chunk = defaultChunk
	}
	t.Chunk = max(t.Chunk, d.Chunk.Min)
	if t.Deadline == 0 {
		t.Deadline = endpoint.DefaultDeadline
	}
	t.SampleRate = j.Config.SampleRate
	t.Continuous = d.Continuous
	if j.ConnectTimeout == 0 {
		j.ConnectTimeout = connectTimeout
	}
	if j.FinishTimeout == 0 {
		j.FinishTimeout = finishTimeout
	}
	switch {
	case j.Config.SampleRate <= 0:
		return fmt.Errorf("%s: sample rate %d Hz", d.Name, j.Config.SampleRate)
	case len(j.PCM) == 0 || len(j.PCM)%2 != 0:
		return fmt.Errorf("%s: item %s: %d bytes are no 16 bit audio", d.Name, j.Open.Item.ID, len(j.PCM))
	case d.Chunk.Max > 0 && t.Chunk > d.Chunk.Max:
		return fmt.Errorf("%s: chunk of %v: at most %v", d.Name, t.Chunk, d.Chunk.Max)
	case bytesAt(t.Chunk, t.SampleRate) == 0 || t.Chunk > 10*time.Second:
		return fmt.Errorf("%s: chunk of %v: want 1 ms to 10 s", d.Name, t.Chunk)
	case d.MaxStream > 0 && pcmDuration(len(j.PCM), t.SampleRate)+t.Deadline > d.MaxStream:
		return fmt.Errorf("%s: item %s lasts longer than the %v that one stream may take; split it", d.Name, j.Open.Item.ID, d.MaxStream)
	case t.EveryTurn && d.ForceEndsStream && t.Forced && len(j.Turns.List) > 1:
		return errors.New(d.Name + ": a forced endpoint ends the stream, so only the last turn can be forced")
	}
	return nil
}
