package streamer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
)

// run is the state of one session. Its fields belong to the writer goroutine;
// what the reader shares is in the reader type.
type run struct {
	streamer *Streamer
	job      *Job
	about    providers.Description
	dialect  providers.Session
	secret   redactor
	conn     *connection
	reader   *reader
	rec      record.Session
	chunks   []record.Chunk
	delays   []record.Delay // found while sending
	marked   int            // marks whose T0 is known to be the kernel's
	stuck    int            // first chunk that waits for the peer to read, -1: none

	// With a pacer, chunks are written on its thread and everything else that is
	// sent on the session's goroutine: writing keeps them apart. Neither blocks.
	writing sync.Mutex
	pacer   *pacer
	canary  *canary // nil where there is no socket
	before  usage
	task    task
	next    struct {
		k      int
		end    time.Duration
		frames []providers.Frame
	}
	fired chan error // the task has run

	// scheduled are the turns whose ends are marked, in order; nextStart and
	// nextMark index the first whose start and end were not yet reached.
	scheduled           []int
	nextStart, nextMark int
	unforced            bool // the dialect cannot force this stream after all
	ended               bool // nothing more may be sent
}

// session runs everything and fills the record's last line.
func (r *run) session(ctx context.Context) *record.Session {
	r.rec.Open, r.rec.Turns = r.job.Open, r.job.Turns
	r.scheduled = endpoint.Scheduled(&r.rec)
	start := r.clock().now()
	r.before = r.clock().usage()
	var end record.Close
	if err := r.open(ctx, start); err != nil {
		end = r.closing(ctx, err)
	} else {
		stop := context.AfterFunc(ctx, r.unblock)
		end = r.closing(ctx, r.stream(ctx))
		if end.How == record.Settled {
			end = r.finish(ctx, end)
		}
		stop()
	}
	r.shut(end)
	r.seal(start, end)
	return &r.rec
}

func (r *run) clock() clock { return r.streamer.clock }

// open connects and waits until audio may start.
func (r *run) open(ctx context.Context, start time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, r.job.ConnectTimeout)
	defer cancel()
	conn, err := r.streamer.connect(ctx, r.dialect, &r.rec.Connect)
	if err != nil {
		return err
	}
	r.conn = conn
	r.reader = newReader(r, conn)
	opened := r.clock().now()
	stop := context.AfterFunc(ctx, r.unblock)
	defer stop()
	if _, ok := conn.conn.Conn.(*net.TCPConn); ok {
		r.pacer, r.canary = r.streamer.enter()
	}
	r.fired, r.stuck = make(chan error, 1), -1
	r.task = task{run: r.fire, index: -1}
	if !conn.dial.AwaitReady {
		r.reader.begin(opened)
	}
	go r.reader.loop()
	if err := r.write(conn.dial.Hello); err != nil {
		return &connectError{record.PhaseReady, r.cause(err)}
	}
	if err := r.awaitReady(ctx); err != nil {
		return err
	}
	r.rec.Connect.Ready = r.reader.readyAt - opened
	r.rec.Connect.Start = start - r.reader.zero()
	r.observe(Observation{Started: &r.rec.Connect})
	return nil
}

// awaitReady passes replies on until the provider is ready for audio. A provider
// that was ready and then failed has failed in the stream, not before it.
func (r *run) awaitReady(ctx context.Context) error {
	for !r.reader.started() {
		select {
		case <-r.reader.ready:
		case frames := <-r.reader.replies:
			if err := r.write(frames); err != nil {
				return &connectError{record.PhaseReady, r.cause(err)}
			}
		case <-r.reader.done:
			switch {
			case r.reader.started():
			case ctx.Err() == nil:
				return &connectError{record.PhaseReady, r.reader.err}
			default:
				return &connectError{record.PhaseReady, r.notReady()}
			}
		case <-ctx.Done():
			return &connectError{record.PhaseReady, r.notReady()}
		}
	}
	return nil
}

func (r *run) notReady() error {
	return fmt.Errorf("no ready event within %v", r.job.ConnectTimeout)
}

// unblock makes pending reads and writes return, for a context that ended.
func (r *run) unblock() { r.conn.conn.abort() }

// finish ends a settled session gracefully and keeps what still arrives.
func (r *run) finish(ctx context.Context, end record.Close) record.Close {
	end.Phase = record.PhaseFinish
	if err := r.write(r.dialect.Finish(time.Now())); err != nil {
		end.Detail = "finish: " + err.Error()
		return end
	}
	timer := time.NewTimer(r.job.FinishTimeout)
	defer timer.Stop()
	for {
		select {
		case frames := <-r.reader.replies:
			if err := r.write(frames); err != nil {
				return end
			}
		case <-r.reader.done:
			end.Code = r.reader.code
			return end
		case <-timer.C:
			end.Detail = "finish: no end from the provider within " + r.job.FinishTimeout.String()
			return end
		case <-ctx.Done():
			return end
		}
	}
}

// shut closes the connection and waits for the reader.
func (r *run) shut(end record.Close) {
	if r.conn == nil {
		return
	}
	code := websocket.CloseNormalClosure
	if end.How != record.Settled {
		code = websocket.CloseGoingAway
	}
	_ = r.conn.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	r.conn.ws.Close()
	for {
		select {
		case <-r.reader.replies: // nobody sends them any more
			continue
		case <-r.reader.done:
		}
		break
	}
}

// closing reads how a session ended off its error.
func (r *run) closing(ctx context.Context, err error) record.Close {
	c := record.Close{How: record.Failed, Phase: record.PhaseStream}
	if err == nil {
		c.How = record.Settled
		return c
	}
	var conn *connectError
	if errors.As(err, &conn) {
		c.Phase, err = conn.phase, conn.err
	}
	var rejected *providers.Rejection
	var told *providerError
	var closed *websocket.CloseError
	switch {
	case ctx.Err() != nil:
		c.How, c.Detail = record.Cancelled, context.Cause(ctx).Error()
		return c
	case errors.As(err, &rejected):
		c.Reject, c.Status, c.RetryAfter = rejected.Reason, rejected.Status, rejected.RetryAfter
		c.Detail, c.Request = rejected.Detail, rejected.Request
		return c
	case errors.As(err, &told):
		c.Reject = told.reject
	case errors.As(err, &closed):
		c.How = record.Remote
	case errors.Is(err, errEnded), isReset(err):
		c.How = record.Remote
	}
	c.Detail = err.Error()
	if r.reader != nil {
		if c.Code = r.reader.closeCode(); c.Code != 0 {
			c.How = record.Remote
		}
	}
	// gorilla hides what it wraps; only the interface is left of a timeout.
	var slow net.Error
	if c.Phase == record.PhaseStream && (errors.Is(err, errBacklog) || errors.As(err, &slow) && slow.Timeout()) {
		c.Detail = "the provider did not read what it was sent: " + err.Error()
	}
	return c
}

// seal turns stamps into offsets from t0 and closes the record.
func (r *run) seal(start time.Duration, end record.Close) {
	zero := start
	if r.reader != nil {
		r.rec.Events = r.reader.all()
		r.rec.Connect.Stamps = stampsOf(r.rec.Events)
		if r.reader.started() {
			zero = r.reader.zero()
		} else {
			rebase(r.rec.Events, zero)
		}
	}
	r.rec.Open.T0Wall = r.clock().wall(zero).UTC()
	r.rec.Open.T0Mono = r.clock().mono + int64(zero)
	end.At = r.clock().now() - zero
	end.Detail = r.secret.string(end.Detail)
	r.rec.Close = end
	sent := &r.rec.Sent
	sent.Chunks = len(r.chunks)
	for _, c := range r.chunks {
		sent.Bytes += int64(c.Bytes)
		sent.Audio = c.AudioEnd
	}
	if item := pcmDuration(len(r.job.PCM), r.rec.Open.Target.SampleRate); sent.Audio > item {
		sent.Silence, sent.SilenceKind = sent.Audio-item, "zeros"
	}
	summary(sent, r.chunks)
	r.rec.Client = client(r.before, r.clock().usage())
	r.rec.Delays = append(lateWrites(r.chunks), r.delays...)
	if r.canary != nil {
		for _, d := range r.canary.since(start) {
			d.At -= zero
			r.rec.Delays = append(r.rec.Delays, d)
		}
		r.streamer.leave(r)
	}
	if r.job.Trace {
		r.rec.Chunks = r.chunks
	}
}

func (r *run) now() time.Duration { return r.clock().now() - r.reader.zero() }

func (r *run) observe(o Observation) {
	if r.job.Observe != nil {
		r.job.Observe(o)
	}
}

// stampsOf names the receive stamps that the latencies of a session rest on.
func stampsOf(events []record.Event) string {
	for _, e := range events {
		if e.Kernel == nil {
			return "user"
		}
	}
	return "kernel"
}
