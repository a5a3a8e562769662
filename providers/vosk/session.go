package vosk

import (
	"sync/atomic"
	"time"

	"sttbench/providers"
	"sttbench/record"
)

// The server compares these with the received text byte by byte; without the
// blanks around the colon it breaks and closes with 1011.
const (
	resetText = `{"reset" : 1}`
	eofText   = `{"eof" : 1}`
)

// session is one stream. It relies on frames being written in the order in which
// it returned them: the reply to the n-th message is the n-th reply.
type session struct {
	endpoint string
	hello    []byte
	forced   bool
	audio    [1]providers.Frame // what Audio returns; reused
	ledger   ledger
}

func newSession(endpoint string, hello []byte, forced bool) *session {
	s := &session{endpoint: endpoint, hello: hello, forced: forced}
	s.ledger.init()
	return s
}

// Next implements [providers.Session]. The server's path is free and it asks for
// no credentials, so the endpoint is dialled as it is.
func (s *session) Next(now time.Time, resp *providers.Response) (providers.Step, error) {
	if resp != nil {
		return providers.Step{}, providers.Reject(resp, "", now)
	}
	return providers.Step{Dial: &providers.Dial{
		URL:   s.endpoint,
		Hello: []providers.Frame{{Op: record.Text, Data: s.hello}},
	}}, nil
}

// Audio implements [providers.Session].
func (s *session) Audio(_ time.Time, pcm []byte, end time.Duration) ([]providers.Frame, error) {
	if len(pcm) == 0 {
		return nil, nil
	}
	s.ledger.ask(forAudio)
	s.audio[0] = providers.Frame{Op: record.Binary, Data: pcm, AudioEnd: end}
	return s.audio[:], nil
}

// Turn implements [providers.Session].
func (s *session) Turn(_ time.Time, e providers.Edge, _ providers.Span) ([]providers.Frame, error) {
	if e != providers.End {
		return nil, nil
	}
	if !s.forced {
		return nil, providers.ErrUnsupported
	}
	s.ledger.ask(forReset)
	return []providers.Frame{providers.TextFrame(resetText)}, nil
}

// KeepAlive implements [providers.Session]. The server closes no idle stream.
func (s *session) KeepAlive(time.Time) []providers.Frame { return nil }

// Finish implements [providers.Session].
func (s *session) Finish(time.Time) []providers.Frame {
	s.ledger.ask(forEOF)
	return []providers.Frame{providers.TextFrame(eofText)}
}

// question is what a reply answers.
type question int

const (
	forAudio question = iota
	forReset
	forEOF
)

func (q question) String() string {
	return [...]string{"audio", "the reset", "the end"}[q]
}

// ledger knows which question a reply answers. ask belongs to the goroutine that
// sends and answer to the one that receives; they meet only in the atomic links
// of the list, which holds the few questions that are not audio.
type ledger struct {
	// The sending half.
	asked uint64
	last  *entry
	// The receiving half.
	answered uint64
	seen     *entry
}

type entry struct {
	n    uint64 // its reply's number, from 1
	what question
	next atomic.Pointer[entry]
}

func (l *ledger) init() {
	l.last = new(entry)
	l.seen = l.last
}

// ask books a question; call it before the message can reach the server.
func (l *ledger) ask(q question) {
	l.asked++
	if q == forAudio {
		return
	}
	e := &entry{n: l.asked, what: q}
	l.last.next.Store(e)
	l.last = e
}

// answer books a reply and returns the question that it answers.
func (l *ledger) answer() question {
	l.answered++
	e := l.seen.next.Load()
	if e == nil || e.n != l.answered {
		return forAudio
	}
	l.seen = e
	return e.what
}
