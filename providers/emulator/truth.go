package emulator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Truth is one line of the truth log: something that happened at the emulator's
// socket. All stamps are nanoseconds on the machine's monotonic clock
// (CLOCK_MONOTONIC), so that the log can be laid beside the record of a client
// on the same machine (Linux; elsewhere they count from the server's start).
// Lines are in order of writing: a received message follows what was sent while
// it was handled.
type Truth struct {
	// At is the stamp: right after the read of a received message, right before
	// the write of a sent one.
	At int64 `json:"at_ns"`
	// Kernel is the kernel's stamp of a received message's last segment; 0 where
	// there is none.
	Kernel int64 `json:"kernel_ns,omitempty"`
	// Done is the stamp after the write of a sent message.
	Done int64 `json:"done_ns,omitempty"`
	// Conn counts connections from 1, refused ones included.
	Conn  int        `json:"conn"`
	Event TruthEvent `json:"event"`
	Op    string     `json:"op,omitempty"` // text, binary
	Bytes int        `json:"bytes,omitempty"`
	Kind  TruthKind  `json:"kind,omitempty"`
	// Force counts the forced endpoints of a connection from 1; it stands on the
	// message that forced and on all that answer it.
	Force int `json:"force,omitempty"`
	// Due is when the answer to a force was to leave: the force's receive stamp
	// plus the drawn delay.
	Due int64 `json:"due_ns,omitempty"`
	// Audio is the audio received so far.
	Audio time.Duration `json:"audio_ns"`
	// Status is the HTTP status of a refusal, Code the code of a close frame.
	Status int `json:"status,omitempty"`
	Code   int `json:"code,omitempty"`
}

// TruthEvent is what happened.
type TruthEvent string

// The events. Close is a close frame sent, Gone the end of the connection.
const (
	TruthAccept  TruthEvent = "accept"
	TruthRefuse  TruthEvent = "refuse"
	TruthReceive TruthEvent = "receive"
	TruthSend    TruthEvent = "send"
	TruthClose   TruthEvent = "close"
	TruthGone    TruthEvent = "gone"
)

// TruthKind is what a message was for.
type TruthKind string

// The kinds. Received messages are audio, force, finish or control; sent ones
// are partial, final, or control (greetings and replies).
const (
	TruthAudio   TruthKind = "audio"
	TruthForce   TruthKind = "force"
	TruthFinish  TruthKind = "finish"
	TruthControl TruthKind = "control"
	TruthPartial TruthKind = "partial"
	TruthFinal   TruthKind = "final"
)

// ReadTruth reads a truth log.
func ReadTruth(r io.Reader) ([]Truth, error) {
	var all []Truth
	dec := json.NewDecoder(r)
	for {
		var t Truth
		err := dec.Decode(&t)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("truth log, entry %d: %w", len(all)+1, err)
		}
		all = append(all, t)
	}
}

// truthLog writes the log on a goroutine of its own, so that the path of a
// message costs a channel send only.
type truthLog struct {
	lines chan Truth
	done  sync.WaitGroup
	err   error // of the writer; read after done
}

// newTruthLog starts the writer; a nil w gives a log that keeps nothing.
func newTruthLog(w io.Writer) *truthLog {
	if w == nil {
		return nil
	}
	l := &truthLog{lines: make(chan Truth, 1<<14)}
	l.done.Go(func() {
		bw := bufio.NewWriter(w)
		enc := json.NewEncoder(bw)
		for t := range l.lines {
			if l.err == nil {
				l.err = enc.Encode(t)
			}
		}
		if l.err == nil {
			l.err = bw.Flush()
		}
	})
	return l
}

// add queues one line; it blocks when the writer is far behind, as a line that
// is lost would be a lie.
func (l *truthLog) add(t Truth) {
	if l != nil {
		l.lines <- t
	}
}

// close writes what is queued. No add may follow.
func (l *truthLog) close() error {
	if l == nil {
		return nil
	}
	close(l.lines)
	l.done.Wait()
	if l.err != nil {
		return fmt.Errorf("write truth log: %w", l.err)
	}
	return nil
}
