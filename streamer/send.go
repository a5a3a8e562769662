package streamer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
)

// stream sends the item, then silence, until every scheduled turn is decided.
// nil means that it came to that.
func (r *run) stream(ctx context.Context) error {
	t := &r.rec.Open.Target
	size := bytesAt(t.Chunk, t.SampleRate)
	item := pcmDuration(len(r.job.PCM), t.SampleRate)
	block := make([]byte, size)
	timer := time.NewTimer(0)
	defer timer.Stop()
	looked := -1
	r.chunks = make([]record.Chunk, 0, len(r.job.PCM)/size+1000)
	for k := 0; ; k++ {
		end := pcmDuration((k+1)*size, t.SampleRate)
		frames, err := r.encode(block, k*size, end)
		if err != nil {
			return err
		}
		if err := r.pace(ctx, timer, k, end, frames); err != nil {
			return err
		}
		if end < item || r.nextMark < len(r.scheduled) {
			continue
		}
		if n := len(r.reader.events()); n != looked || k%25 == 0 {
			looked = n
			if r.settled() {
				return nil
			}
		}
	}
}

// encode makes the frames of the block that starts at byte offset at. Beyond the
// item's end it is silence.
func (r *run) encode(block []byte, at int, end time.Duration) ([]providers.Frame, error) {
	if r.ended {
		return nil, nil
	}
	n := 0
	if at < len(r.job.PCM) {
		n = copy(block, r.job.PCM[at:])
	}
	clear(block[n:])
	frames, err := r.dialect.Audio(time.Now(), block, end)
	if err != nil {
		return nil, fmt.Errorf("encode audio: %w", err)
	}
	return frames, nil
}

// pace writes chunk k when it is due and returns when that is done.
func (r *run) pace(ctx context.Context, timer *time.Timer, k int, end time.Duration, frames []providers.Frame) error {
	if r.pacer == nil {
		if err := r.wait(ctx, timer, due(k, r.rec.Open.Target.Chunk)); err != nil {
			return err
		}
		if err := r.send(k, end, frames); err != nil {
			return r.cause(err)
		}
		return nil
	}
	r.next.k, r.next.end, r.next.frames = k, end, frames
	r.task.at = r.reader.zero() + due(k, r.rec.Open.Target.Chunk)
	r.pacer.arm(&r.task)
	for {
		select {
		case err := <-r.fired:
			if err != nil {
				return r.cause(err)
			}
			r.unstick()
			return nil
		case frames := <-r.reader.replies:
			if err := r.write(frames); err != nil {
				r.disarm()
				return r.cause(err)
			}
		case <-r.reader.done:
			r.disarm()
			return r.reader.err
		case <-ctx.Done():
			r.disarm()
			return ctx.Err()
		}
	}
}

// fire runs on the pacer's thread.
func (r *run) fire() { r.fired <- r.send(r.next.k, r.next.end, r.next.frames) }

// disarm makes sure that nothing of this session runs on the pacer's thread.
func (r *run) disarm() {
	if !r.pacer.disarm(&r.task) {
		<-r.fired
	}
}

// unstick keeps account of a peer that does not read: the write of a chunk
// returned when the kernel had it, not when it was handed over, and so did a forced
// endpoint behind it.
func (r *run) unstick() {
	c := r.conn.conn
	emptyAt, waiting := c.state()
	if waiting && r.stuck < 0 {
		r.stuck = len(r.chunks) - 1
	}
	if waiting {
		return
	}
	if r.stuck >= 0 {
		at := emptyAt - r.reader.zero()
		r.chunks[r.stuck].Return = at
		for i := r.marked; i < len(r.rec.Marks); i++ {
			r.rec.Marks[i].T0 = max(r.rec.Marks[i].T0, at)
		}
		r.stuck = -1
	}
	r.marked = len(r.rec.Marks)
}

// wait returns when stamp at has come; meanwhile it passes replies on.
func (r *run) wait(ctx context.Context, timer *time.Timer, at time.Duration) error {
	timer.Reset(at - r.now())
	for {
		select {
		case <-timer.C:
			return ctx.Err()
		case frames := <-r.reader.replies:
			if err := r.write(frames); err != nil {
				return r.cause(err)
			}
		case <-r.reader.done:
			return r.reader.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// cause prefers the provider's own word to the broken pipe that follows it.
func (r *run) cause(err error) error {
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	for {
		select {
		case <-r.reader.replies:
		case <-r.reader.done:
			return r.reader.err
		case <-timer.C:
			return err
		}
	}
}

// send writes the frames of chunk k and marks the turn whose end they carried.
func (r *run) send(k int, end time.Duration, frames []providers.Frame) error {
	c := record.Chunk{Due: due(k, r.rec.Open.Target.Chunk), AudioEnd: end}
	c.Start = r.now()
	err := r.write(frames)
	c.Return = r.now()
	if !r.ended {
		for _, f := range frames {
			c.Bytes += len(f.Data)
		}
		r.chunks = append(r.chunks, c)
	}
	if err != nil {
		return err
	}
	return r.edges(c)
}

// edges tells the dialect of turn starts and ends that the chunk has reached.
func (r *run) edges(c record.Chunk) error {
	if err := r.starts(c.AudioEnd); err != nil {
		return err
	}
	for r.nextMark < len(r.scheduled) {
		i := r.scheduled[r.nextMark]
		turn := r.rec.Turns.List[i]
		if c.AudioEnd < turn.EOS {
			return nil
		}
		m := record.Mark{Turn: i, F0: c.Start, T0: c.Return, AudioEnd: c.AudioEnd}
		if err := r.force(turn, &m); err != nil {
			return err
		}
		r.rec.Marks = append(r.rec.Marks, m)
		r.nextMark++
		r.observe(Observation{Mark: &m})
	}
	return nil
}

// starts announces the turns that have begun, to protocols that want to know.
func (r *run) starts(sent time.Duration) error {
	for ; r.rec.Open.Target.Forced && r.nextStart < len(r.scheduled); r.nextStart++ {
		turn := r.rec.Turns.List[r.scheduled[r.nextStart]]
		if sent < turn.Start {
			return nil
		}
		frames, err := r.dialect.Turn(time.Now(), providers.Start, providers.Span{Start: turn.Start, Sent: sent})
		if err != nil && !errors.Is(err, providers.ErrUnsupported) {
			return fmt.Errorf("encode turn start: %w", err)
		}
		if err := r.write(frames); err != nil {
			return err
		}
	}
	return nil
}

// force sends the forced endpoint of a turn. Both stamps enclose nothing but the
// write.
func (r *run) force(turn record.Turn, m *record.Mark) error {
	if !r.rec.Open.Target.Forced || r.unforced {
		return nil
	}
	frames, err := r.dialect.Turn(time.Now(), providers.End,
		providers.Span{Start: turn.Start, SE: turn.SE, EOS: turn.EOS, Sent: m.AudioEnd})
	if errors.Is(err, providers.ErrUnsupported) {
		r.unforced = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("encode forced endpoint: %w", err)
	}
	m.Forced = true
	m.F0 = r.now()
	err = r.write(frames)
	m.T0 = r.now()
	// A write that does not block takes microseconds. If this one took long, we were
	// not run between it and the second stamp, and TTF would come out too short.
	if by := m.T0 - m.F0; r.conn.conn.raw != nil && by >= record.DelayFloor {
		r.delays = append(r.delays, record.Delay{Kind: record.DelayWrite, At: m.F0, By: by})
	}
	if r.about.ForceEndsStream {
		r.ended = true
	}
	return err
}

// settled tells whether the session has said all that it will.
func (r *run) settled() bool {
	view := r.rec
	view.Events = r.reader.events()
	return endpoint.Settled(&view, r.job.Rules, r.now())
}

// write sends frames in order.
func (r *run) write(frames []providers.Frame) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	ws := r.conn.ws
	for _, f := range frames {
		deadline := time.Now().Add(writeTimeout)
		var err error
		switch f.Op {
		case record.Text:
			err = errors.Join(ws.SetWriteDeadline(deadline), ws.WriteMessage(websocket.TextMessage, f.Data))
		case record.Binary:
			err = errors.Join(ws.SetWriteDeadline(deadline), ws.WriteMessage(websocket.BinaryMessage, f.Data))
		case record.Ping:
			err = ws.WriteControl(websocket.PingMessage, f.Data, deadline)
		case record.CloseOp:
			err = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(f.Code, string(f.Data)), deadline)
		default:
			err = fmt.Errorf("a WebSocket has no %q frames", f.Op)
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
