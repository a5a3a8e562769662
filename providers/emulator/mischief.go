package emulator

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// tightBuffer is the socket buffer of a server that reads slowly, in bytes, so
	// that the client feels it before the kernel has stored minutes of audio.
	tightBuffer = 4 << 10
	// hugePiece is the size of the fragments of a huge message, in bytes.
	hugePiece = 64 << 10
	// mostNoise is the longest message of binary garbage, in bytes.
	mostNoise = 256
)

// mischief is what the faults of a call have to remember.
type mischief struct {
	noise  *rand.Rand
	copies *[]outbound // takes what is sent, for the second time
	sent   int         // messages sent, for every kind of garbage
	rushed bool        // the final that comes too early is out
	owed   bool        // the final that nobody asked for is due
	mute   atomic.Bool // nothing is sent any more; the reader asks, too

	said, asked pair        // of the partials that are told, and that are asked for
	stale       *Hypothesis // what is answered to the next question
}

// arm prepares the connection for the faults that lie below the messages.
func (c *Call) arm() {
	f := &c.server.faults
	if f.halfOpen.on {
		pong, closing := c.conn.PingHandler(), c.conn.CloseHandler()
		c.conn.SetPingHandler(func(data string) error {
			if c.mute.Load() {
				return nil
			}
			return pong(data)
		})
		c.conn.SetCloseHandler(func(code int, text string) error {
			if c.mute.Load() {
				return nil
			}
			return closing(code, text)
		})
	}
	if f.readRate > 0 || f.neverRead {
		if tcp, ok := belowTLS(c.conn.NetConn()).(interface{ SetReadBuffer(int) error }); ok {
			_ = tcp.SetReadBuffer(tightBuffer)
		}
	}
}

// rest holds the reader back after a message of n bytes; false means that the
// call is over.
func (c *Call) rest(n int, stop <-chan struct{}) bool {
	rate := c.server.faults.readRate
	if rate == 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(n) * time.Second / time.Duration(rate))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// broken breaks the stream by the first fault whose moment has come, and tells
// whether there was one.
func (c *Call) broken(come func(trigger) bool) bool {
	switch f := &c.server.faults; {
	case come(f.reset):
		c.reset()
	case come(f.abrupt):
		c.Abort()
	case come(f.closing):
		c.Close(f.closeCode, "emulator: fault")
	case come(f.halfOpen):
		c.mute.Store(true)
	default:
		return false
	}
	return true
}

// reset breaks the connection with a TCP reset instead of an orderly end.
func (c *Call) reset() {
	c.dead = true
	conn := belowTLS(c.conn.NetConn())
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// spoil applies the faults of answers. The outer list is one of instants.
func (c *Call) spoil(parts []Final) [][]Final {
	f := &c.server.faults
	last := parts[len(parts)-1]
	if f.emptyAck {
		last.Start, last.Words = parts[0].Start, nil
		parts = []Final{last}
	}
	answers := [][]Final{parts}
	if n := len(last.Words); f.split > 0 && n > 1 {
		first := last
		first.Ack, first.Words, first.End = false, last.Words[:n/2], last.Words[n/2-1].End
		last.Words, last.Start = last.Words[n/2:], first.End
		answers = [][]Final{append(parts[:len(parts)-1:len(parts)-1], first), {last}}
	}
	if f.noAck {
		for i, group := range answers {
			var kept []Final
			for _, part := range group {
				part.Ack = false
				if len(part.Words) > 0 {
					kept = append(kept, part)
				}
			}
			answers[i] = kept
		}
	}
	if f.revised {
		group := &answers[len(answers)-1]
		*group = revise(*group)
	}
	return answers
}

// revise makes the end of an answer wrong, and right again behind it.
func revise(parts []Final) []Final {
	n := len(parts)
	if n == 0 || len(parts[n-1].Words) == 0 {
		return parts
	}
	right := parts[n-1]
	right.Revises = true
	draft := right
	draft.Revises = false
	draft.Words = append([]Word(nil), right.Words...)
	draft.Words[len(draft.Words)-1].Text = wrongWords[0]
	return append(parts[:n-1:n-1], draft, right)
}

// sayFinals lets the stream say one group of an answer.
func (c *Call) sayFinals(group []Final, what Truth) {
	c.sending = what
	defer func() { c.sending = Truth{} }()
	var copies []outbound
	if c.server.faults.duplicate && what.Force > 0 {
		c.copies = &copies
	}
	for _, f := range group {
		c.stream.Final(c, f)
	}
	c.copies = nil
	for _, m := range copies {
		c.send(m)
	}
}

// answered is called when the answer to a force is out; force is 0 for the end of
// the stream.
func (c *Call) answered(force int) {
	if force == 0 || !c.server.faults.after {
		return
	}
	c.owed = true
	if !c.hear.cfg.Lockstep { // such servers speak only when spoken to
		c.volunteer()
	}
}

// volunteer says the final that nobody asked for: two words that were not said
// either.
func (c *Call) volunteer() {
	if !c.owed || c.pending > 0 || c.finished || c.closing || c.dead {
		return
	}
	c.owed = false
	f := c.hear.take(CauseEndpoint, c.hear.received())
	f.Words = append(f.Words, Word{"thank", f.Start, f.End}, Word{"you", f.End, f.End})
	c.sending.Kind = TruthFinal
	c.stream.Final(c, f)
	c.sending = Truth{}
}

// sayPartial lets the stream say a partial, and an older one again.
func (c *Call) sayPartial(h Hypothesis) {
	c.stream.Partial(c, h)
	if old, ok := c.said.older(h); ok && c.server.faults.outOfOrder {
		c.stream.Partial(c, old)
	}
}

// reorder answers the question after the one that brought new words with what was
// answered before them.
func (c *Call) reorder(h Hypothesis) Hypothesis {
	if c.stale != nil {
		h, c.stale = *c.stale, nil
		return h
	}
	if old, ok := c.asked.older(h); ok {
		c.stale = &old
	}
	return h
}

// pair remembers the last hypothesis.
type pair struct{ last Hypothesis }

// older returns the hypothesis before h where h has more words of the same
// utterance than it.
func (p *pair) older(h Hypothesis) (Hypothesis, bool) {
	old := p.last
	p.last = h
	return old, len(old.Words) > 0 && old.Start == h.Start && len(h.Words) > len(old.Words)
}

// disturb sends the messages that mean nothing.
func (c *Call) disturb() {
	f := &c.server.faults
	c.sent++
	due := func(every int) bool { return every > 0 && c.sent%every == 0 }
	what := c.sending
	c.sending = Truth{}
	if due(f.garbageEvery) {
		c.write(outbound{false, []byte(`{"type":"garbage","text":`)})
	}
	if due(f.unknownEvery) {
		c.write(outbound{false, fmt.Appendf(nil, `{"type":"emulator.unknown","number":%d}`, c.sent)})
	}
	if due(f.binaryEvery) {
		c.write(outbound{true, c.garbage()})
	}
	c.sending = what
}

// garbage is a random number of random bytes that are not UTF-8.
func (c *Call) garbage() []byte {
	data := make([]byte, 1+c.noise.IntN(mostNoise))
	for i := range data {
		data[i] = byte(c.noise.Uint32())
	}
	data[0] = 0xff
	return data
}

// sendHuge sends a message of the armed size, piece by piece: it is never held.
func (c *Call) sendHuge() {
	f := &c.server.faults
	if f.huge == 0 || f.silent || c.closing || c.mute.Load() {
		return
	}
	const head, tail = `{"type":"emulator.huge","filler":"`, `"}`
	c.writeWith("text", f.huge, func() error {
		w, err := c.conn.NextWriter(websocket.TextMessage)
		if err != nil {
			return err
		}
		filler := io.LimitReader(new(letters), int64(f.huge-len(head)-len(tail)))
		if _, err := io.Copy(w, io.MultiReader(strings.NewReader(head), filler, strings.NewReader(tail))); err != nil {
			return err
		}
		return w.Close()
	})
}

// letters is an endless row of the letter x.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
