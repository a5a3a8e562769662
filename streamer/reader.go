package streamer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"sttbench/providers"
	"sttbench/record"
)

// Bounds of what one session keeps: a provider that floods us ends the session,
// it does not fill the memory.
const (
	maxEvents   = 200_000
	maxReceived = 256 << 20 // bytes of all messages
	maxRaw      = 8 << 10   // bytes of one message kept verbatim
	maxText     = 512 << 10 // bytes of text kept of one event: hours of speech
	maxWords    = 5_000     // words kept of one event
	maxDecoded  = 16        // events kept of one message
)

// errEnded tells that the provider ended the stream in its own protocol.
var errEnded = errors.New("the provider ended the stream")

// providerError is an error event of the provider.
type providerError struct {
	cause, text string
	reject      record.Reject
}

func (e *providerError) Error() string {
	switch {
	case e.cause == "":
		return e.text
	case e.text == "":
		return e.cause
	case strings.HasPrefix(e.text, e.cause):
		return e.text
	}
	return e.cause + ": " + e.text
}

// reader receives, stamps and decodes. Its goroutine ends when the connection
// does, or when the provider has said its last word; then done is closed.
type reader struct {
	run     *run
	conn    *connection
	dialect providers.Session
	ready   chan struct{}          // closed when audio may start
	replies chan []providers.Frame // for the writer to send
	done    chan struct{}
	err     error // why it ended; valid after done
	code    int   // received close code; valid after done

	readyAt  time.Duration  // stamp of the ready event, or of the open transport
	list     []record.Event // everything received, stamps of the clock until t0 is set
	received int64

	// What the writer sees, without a lock: a slice header whose elements no
	// longer change, and t0 as a stamp of the clock.
	view  atomic.Pointer[[]record.Event]
	t0    atomic.Int64
	begun atomic.Bool // t0 is set
}

func newReader(r *run, conn *connection) *reader {
	return &reader{
		run: r, conn: conn, dialect: r.dialect,
		ready: make(chan struct{}), replies: make(chan []providers.Frame, 16), done: make(chan struct{}),
	}
}

func (r *reader) loop() {
	defer close(r.done)
	for {
		op, data, err := r.conn.ws.ReadMessage()
		at := r.conn.conn.read
		if err != nil {
			r.err = r.ended(at, err)
			return
		}
		f := providers.Frame{Op: record.Text, Data: data}
		if op == websocket.BinaryMessage {
			f.Op = record.Binary
		}
		if r.received += int64(len(data)); r.received > maxReceived || len(r.list) >= maxEvents {
			r.err = fmt.Errorf("the provider sent more than %d messages or %d MiB", maxEvents, maxReceived>>20)
			return
		}
		if r.err = r.handle(at, f); r.err != nil {
			return
		}
	}
}

// ended reads the end of the connection; a close frame is an event too.
func (r *reader) ended(at stamp, err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) || closed.Code == websocket.CloseAbnormalClosure {
		if errors.As(err, &closed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return fmt.Errorf("connection lost without a close frame: %w", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("read: %w", err)
	}
	r.code = closed.Code
	told := r.handle(at, providers.Frame{Op: record.CloseOp, Code: closed.Code, Data: []byte(closed.Text)})
	if told != nil && !errors.Is(told, errEnded) {
		return told
	}
	return err
}

// handle keeps one received frame and acts on what it means.
func (r *reader) handle(at stamp, f providers.Frame) error {
	f.Data = r.run.secret.bytes(f.Data)
	decoded, replies, err := r.dialect.Decode(time.Now(), f)
	decoded = capped(decoded)
	e := record.Event{User: at.user - r.zero(), Op: f.Op, Bytes: len(f.Data), Code: f.Code, Decoded: decoded}
	if at.hasKernel {
		kernel := at.kernel - r.zero()
		e.Kernel = &kernel
	}
	setRaw(&e, f.Data)
	if err != nil {
		e.Error = err.Error()
	}
	r.list = append(r.list, e)
	var last error
	for _, d := range decoded {
		switch d.Kind {
		case record.Ready:
			r.begin(at.user)
		case record.Error:
			last = &providerError{cause: d.Cause, text: d.Text, reject: d.Reject}
		case record.Done:
			last = errEnded
		}
	}
	r.publish()
	if r.started() {
		r.run.observe(Observation{Event: &r.list[len(r.list)-1]})
	}
	if len(replies) > 0 && last == nil {
		r.replies <- replies // shut drains it
	}
	return last
}

// capped bounds what one message can add to a record, so that the record can always
// be read again.
func capped(decoded []record.Decoded) []record.Decoded {
	decoded = decoded[:min(len(decoded), maxDecoded)]
	for i := range decoded {
		d := &decoded[i]
		d.Words = d.Words[:min(len(d.Words), maxWords)]
		for _, s := range []*string{&d.Text, &d.Cause, &d.Segment, &d.Key} {
			if len(*s) > maxText {
				*s = strings.ToValidUTF8((*s)[:maxText], "")
			}
		}
	}
	return decoded
}

// begin chooses t0 and rewrites the stamps taken before it. A provider that says
// ready twice changes nothing.
func (r *reader) begin(ready time.Duration) {
	if r.started() {
		return
	}
	r.readyAt = ready
	t0 := r.run.streamer.start(r.run)
	rebase(r.list, t0)
	r.t0.Store(int64(t0))
	r.begun.Store(true)
	close(r.ready)
}

// rebase turns stamps of the clock into stamps since t0.
func rebase(events []record.Event, t0 time.Duration) {
	for i := range events {
		events[i].User -= t0
		if k := events[i].Kernel; k != nil {
			*k -= t0
		}
	}
}

// zero is t0 as a stamp of the clock, 0 before it is set.
func (r *reader) zero() time.Duration { return time.Duration(r.t0.Load()) }

func (r *reader) started() bool { return r.begun.Load() }

func (r *reader) publish() {
	view := r.list[:len(r.list):len(r.list)]
	r.view.Store(&view)
}

// events is what has been received so far; safe beside the loop.
func (r *reader) events() []record.Event {
	if view := r.view.Load(); view != nil {
		return *view
	}
	return nil
}

// all is everything received; only after done.
func (r *reader) all() []record.Event { return r.list }

// closeCode is the received close code, 0 while the reader still runs.
func (r *reader) closeCode() int {
	select {
	case <-r.done:
		return r.code
	default:
		return 0
	}
}

func setRaw(e *record.Event, data []byte) {
	if e.Op == record.CloseOp || e.Op == record.Text {
		if len(data) > maxRaw {
			data = data[:maxRaw]
			for len(data) > 0 && !utf8.RuneStart(data[len(data)-1]) {
				data = data[:len(data)-1]
			}
			if len(data) > 0 && data[len(data)-1] >= utf8.RuneSelf {
				data = data[:len(data)-1]
			}
		}
		if utf8.Valid(data) {
			e.Raw = string(data)
			return
		}
	}
	e.RawBase64 = append([]byte(nil), data[:min(len(data), maxRaw)]...)
}

// isReset tells whether the peer broke the connection.
func isReset(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
