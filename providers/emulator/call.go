package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// maxMessage bounds a client message, in bytes; larger ones get close 1009.
	maxMessage = 8 << 20
	// maxPending bounds the forces that wait for their answer.
	maxPending = 256
	// inboxSize bounds the messages read ahead; past it TCP holds the client back.
	inboxSize = 64
	// writeTimeout ends a stream whose client does not read.
	writeTimeout = 10 * time.Second
	// closeWait is how long the client may take to answer a close frame.
	closeWait = 2 * time.Second
	// spin is how early the loop wakes for the answer to a force, to wait for the
	// exact instant awake: timers are up to a millisecond late.
	spin = 1500 * time.Microsecond
)

// Call is one connection as its [Stream] sees it. It is used on the stream's
// goroutine only.
type Call struct {
	server *Server
	n      int
	conn   *websocket.Conn
	stream Stream
	ids    *rand.Rand
	delays *rand.Rand
	hear   *hearing

	inbox   chan inbound
	gone    chan struct{} // closed by the reader when the connection is over
	tasks   tasks
	pending int   // forces without answer
	forces  int   // forces so far
	lastDue int64 // of the latest answer; answers keep their order

	finished bool // no message is looked at any more
	closing  bool // our close frame is out
	dead     bool // the connection is broken or given up

	in      inbound // message being handled
	sending Truth   // what sends are for: Kind, Force, Due

	mischief
}

// inbound is a message, when it was read, and what the stream made of it.
type inbound struct {
	Message
	at, kernel int64
	kind       TruthKind
	force      int
	due        int64
}

// received is the best receive stamp: the kernel's where there is one.
func (m inbound) received() int64 {
	if m.kernel != 0 {
		return m.kernel
	}
	return m.at
}

type outbound struct {
	binary bool
	data   []byte
}

func newCall(s *Server, n int, conn *websocket.Conn, stream Stream, ids *rand.Rand) *Call {
	hear := newHearing(s.settings.Script, s.settings.PartialLag, s.settings.WordErrorRate, s.rand(n, drawErrors))
	if s.settings.Manifest != nil {
		hear.script, hear.match = nil, s.settings.Manifest.matcher(s.settings.Script)
	}
	return &Call{
		server: s, n: n, conn: conn, stream: stream, ids: ids,
		delays: s.rand(n, drawDelays),
		hear:   hear,
		inbox:  make(chan inbound, inboxSize),
		gone:   make(chan struct{}),

		mischief: mischief{noise: s.rand(n, drawNoise)},
	}
}

// Hear sets how the recogniser listens; it may be changed at any time.
func (c *Call) Hear(cfg Hearing) { c.hear.configure(cfg) }

// Audio takes PCM, signed 16 bit little endian mono at [Hearing.SampleRate]. It
// may call Partial or Final of the stream before it returns.
func (c *Call) Audio(pcm []byte) {
	c.in.kind = TruthAudio
	c.hear.audio(pcm)
	switch at := c.hear.received(); {
	case c.broken(func(t trigger) bool { return t.reached(at) }):
	case c.hear.overflowed():
		c.Close(websocket.ClosePolicyViolation, "emulator: too much audio without a final")
	default:
		c.volunteer()
		c.say()
	}
}

// say says what is due by itself: a final, else a partial. Nothing is said while
// the answer to a force is outstanding.
func (c *Call) say() {
	if c.pending > 0 || c.finished || c.closing || c.dead {
		return
	}
	faults := &c.server.faults
	if f, ok := c.hear.naturalFinal(faults.early || faults.before && !c.rushed); ok {
		c.rushed = true
		c.sending.Kind = TruthFinal
		c.stream.Final(c, f)
	} else if c.hear.partialDue() && !faults.noPartials {
		c.sending.Kind = TruthPartial
		c.sayPartial(c.hear.hypothesis())
	}
	c.sending = Truth{}
}

// Received is the position of the audio received so far.
func (c *Call) Received() time.Duration { return c.hear.received() }

// Hypothesis is what a partial may show now, for streams that answer by
// themselves. It has no words under the fault "no-partials", and old ones at
// times under "out-of-order-partials".
func (c *Call) Hypothesis() Hypothesis {
	h := c.hear.hypothesis()
	switch f := &c.server.faults; {
	case f.noPartials:
		h.Words = nil
	case f.outOfOrder:
		h = c.reorder(h)
	}
	return h
}

// Force is a forced endpoint: what was heard so far becomes final, and Final is
// called one final delay after the current message was received. id comes back
// in [Final.ID].
func (c *Call) Force(id string) {
	c.in.kind = TruthForce
	c.forces++
	c.in.force = c.forces
	if c.broken(trigger.atForce) {
		return
	}
	c.sendHuge()
	switch {
	case c.pending >= maxPending:
		c.Close(websocket.ClosePolicyViolation, "emulator: too many forced endpoints without an answer")
	default:
		c.in.due = c.answer(c.spoil(c.hear.force(CauseForce, id)), c.forces)
	}
}

// Finish is the client's wish to end: the rest becomes final with CauseFinish
// after a final delay. No further message is looked at.
func (c *Call) Finish() {
	c.in.kind = TruthFinish
	if c.finished {
		return
	}
	c.finished = true
	c.in.due = c.answer([][]Final{c.hear.force(CauseFinish, "")}, 0)
}

// answer schedules the groups of finals, the first one after the final delay,
// and returns when that is due.
func (c *Call) answer(groups [][]Final, force int) int64 {
	first := max(c.in.received()+int64(c.server.settings.FinalDelay.Draw(c.delays)), c.lastDue)
	due := first
	c.pending++
	for i, group := range groups {
		if i > 0 {
			due += int64(c.server.faults.split)
		}
		what := Truth{Kind: TruthFinal, Force: force, Due: due}
		last := i == len(groups)-1
		c.tasks.add(&task{due: due, precise: true, run: func() {
			c.sayFinals(group, what)
			if last {
				c.pending--
				c.answered(force)
				c.say()
			}
		}})
	}
	c.lastDue = due
	return first
}

// SendText sends a text message.
func (c *Call) SendText(data []byte) { c.send(outbound{false, data}) }

// SendJSON sends v as a JSON text message.
func (c *Call) SendJSON(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		// Vendors send plain structs; one that cannot be encoded is a bug of theirs.
		panic("emulator: " + err.Error())
	}
	c.SendText(data)
}

// SendBinary sends a binary message.
func (c *Call) SendBinary(data []byte) { c.send(outbound{true, data}) }

func (c *Call) send(m outbound) {
	if c.closing || c.dead || c.server.faults.silent || c.mute.Load() {
		return
	}
	if c.copies != nil {
		*c.copies = append(*c.copies, m)
	}
	c.disturb()
	c.write(m)
}

func (c *Call) write(m outbound) {
	kind, op := websocket.TextMessage, "text"
	if m.binary {
		kind, op = websocket.BinaryMessage, "binary"
	}
	c.writeWith(op, len(m.data), func() error { return c.conn.WriteMessage(kind, m.data) })
}

// writeWith writes one message by fn and keeps the truth about it.
func (c *Call) writeWith(op string, size int, fn func() error) {
	if c.dead {
		return
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	t := c.sending
	t.At = c.server.clock.now()
	err := fn()
	t.Done = c.server.clock.now()
	if err != nil {
		c.dead = true
		return
	}
	if t.Kind == "" {
		t.Kind = TruthControl
	}
	t.Conn, t.Event, t.Op, t.Bytes, t.Audio = c.n, TruthSend, op, size, c.Received()
	c.server.truth.add(t)
}

// Close sends a close frame and ends the stream. A code of 0 sends an empty
// close frame.
func (c *Call) Close(code int, reason string) {
	if c.closing || c.dead || c.mute.Load() {
		return
	}
	c.closing = true
	var payload []byte
	if code != 0 {
		payload = websocket.FormatCloseMessage(code, reason)
	}
	at := c.server.clock.now()
	err := c.conn.WriteControl(websocket.CloseMessage, payload, time.Now().Add(writeTimeout))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.dead = true
		return
	}
	c.server.truth.add(Truth{At: at, Done: c.server.clock.now(), Conn: c.n, Event: TruthClose, Code: code, Audio: c.Received()})
	c.After(closeWait, func() { c.dead = true })
}

// Abort breaks the connection without a close frame.
func (c *Call) Abort() { c.dead = true }

// Rand gives reproducible ids.
func (c *Call) Rand() *rand.Rand { return c.ids }

// Wall is the wall clock, for dates in messages.
func (c *Call) Wall() time.Time { return time.Now() }

// After calls fn on the stream's goroutine after d of real time.
func (c *Call) After(d time.Duration, fn func()) *Timer {
	t := &Timer{c, &task{run: fn, index: -1}}
	t.Reset(d)
	return t
}

// Timer is a call that [Call.After] has planned.
type Timer struct {
	c *Call
	t *task
}

// Reset plans the call anew, d from now.
func (t *Timer) Reset(d time.Duration) {
	t.Stop()
	t.t.due = t.c.server.clock.now() + int64(d)
	t.c.tasks.add(t.t)
}

// Stop cancels the call if it is still to come.
func (t *Timer) Stop() { t.c.tasks.remove(t.t) }

// run serves the connection until it is over.
func (c *Call) run(ctx context.Context) {
	c.conn.SetReadLimit(maxMessage)
	c.arm()
	stop := make(chan struct{})
	go c.read(stop)
	c.stream.Open(c)
	c.loop(ctx)
	close(stop)
	_ = c.conn.Close()
	<-c.gone
	c.server.truth.add(Truth{At: c.server.clock.now(), Conn: c.n, Event: TruthGone, Audio: c.Received()})
}

// loop runs tasks and messages in the order in which they are due.
func (c *Call) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !c.dead {
		wait := time.Hour
		if next := c.tasks.first(); next != nil {
			early := int64(0)
			if next.precise {
				early = int64(spin)
			}
			left := next.due - early - c.server.clock.now()
			if left <= 0 {
				c.runNext()
				continue
			}
			wait = time.Duration(left)
		}
		timer.Reset(wait)
		inbox := c.inbox
		if c.pending > 0 && c.hear.cfg.Lockstep && !c.finished {
			inbox = nil
		}
		select {
		case m := <-inbox:
			c.handle(m)
		case <-timer.C:
		case <-c.gone:
			c.drain()
			return
		case <-ctx.Done():
			c.Close(websocket.CloseGoingAway, "emulator: closing")
			return
		}
	}
}

// drain handles what was read before the connection was over, so that the truth
// log misses no message.
func (c *Call) drain() {
	for {
		select {
		case m := <-c.inbox:
			c.handle(m)
		default:
			return
		}
	}
}

// runNext runs the first task at its exact instant.
func (c *Call) runNext() {
	t := c.tasks.first()
	for t.precise && c.server.clock.now() < t.due {
	}
	c.tasks.remove(t)
	t.run()
}

func (c *Call) handle(m inbound) {
	c.in = m
	c.in.kind = TruthControl
	if !c.finished && !c.closing {
		c.stream.Message(c, m.Message)
	}
	op := "text"
	if m.Binary {
		op = "binary"
	}
	c.server.truth.add(Truth{
		At: m.at, Kernel: m.kernel, Conn: c.n, Event: TruthReceive, Op: op, Bytes: len(m.Data),
		Kind: c.in.kind, Force: c.in.force, Due: c.in.due, Audio: c.Received(),
	})
}

// read reads messages until the connection is over.
func (c *Call) read(stop <-chan struct{}) {
	defer close(c.gone)
	if c.server.faults.neverRead { // so nobody sees the client leave: it stays until the stream or the server ends
		<-stop
		return
	}
	for {
		kind, data, err := c.conn.ReadMessage()
		at := c.server.clock.now()
		if err != nil {
			return
		}
		m := inbound{
			Message: Message{Binary: kind == websocket.BinaryMessage, Data: data},
			at:      at, kernel: kernelStamp(c.conn.NetConn()),
		}
		select {
		case c.inbox <- m:
		case <-stop:
			return
		}
		if !c.rest(len(data), stop) {
			return
		}
	}
}
