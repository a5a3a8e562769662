package emulator

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Vendor plays one vendor's side of the protocol. Implementations are stateless
// values and safe for concurrent use; the state of a connection lives in the
// Stream.
type Vendor interface {
	// Accept judges a WebSocket handshake: either what it opens, or a refusal.
	// Ids come from rnd, so that a session can be reproduced.
	Accept(r *http.Request, rnd *rand.Rand) (*Accepted, *Refusal)
	// Refuse is this vendor's refusal with the given HTTP status (400 to 599),
	// for the fault "refuse".
	Refuse(r *http.Request, rnd *rand.Rand, status int) *Refusal
}

// Reviser is a [Vendor] in whose protocol a final may change again: its streams
// know what to do with [Final.Revises].
type Reviser interface {
	Vendor
	Revises()
}

// Accepted is a handshake that goes through.
type Accepted struct {
	Stream Stream
	// Header is added to the 101 answer.
	Header http.Header
	// Subprotocol is the chosen WebSocket subprotocol; "" for none.
	Subprotocol string
}

// Refusal is the HTTP answer to a handshake that does not go through.
type Refusal struct {
	Status int
	Header http.Header
	Body   []byte
}

// Stream is the vendor's state of one connection. All methods run on one
// goroutine and must not block.
type Stream interface {
	// Open is called once before anything else: the place for [Call.Hear] and for
	// a greeting.
	Open(c *Call)
	// Message handles one client message. Pings and closes are the core's.
	Message(c *Call, m Message)
	// Partial is told, at the pace of [Hearing.PartialEvery], what was heard since
	// the last final. It may run inside a call of [Call.Audio].
	Partial(c *Call, h Hypothesis)
	// Final is told text that will not change any more, whether forced or natural.
	// Natural finals run inside a call of [Call.Audio], at most one per call;
	// answers to [Call.Force] and [Call.Finish] run later. The stream answers
	// CauseFinish with its farewell and [Call.Close].
	Final(c *Call, f Final)
}

// Message is one client message. Data is valid during the call only.
type Message struct {
	Binary bool // else text
	Data   []byte
}

// Hearing says how the recogniser listens. Durations are audio time.
type Hearing struct {
	// SampleRate of the PCM given to [Call.Audio], in Hz; 0 means 16000.
	SampleRate int
	// PartialEvery is the step of audio at which partials are said, empty ones
	// included. Zero says one whenever there are new words; NoPartials never does,
	// for streams that ask [Call.Hypothesis] by themselves.
	PartialEvery time.Duration
	// Endpointing ends an utterance after that much silence; 0 turns it off. The
	// rule is simple: audio below −45 dBFS (RMS over 10 ms) is silence. While no
	// louder audio has ever come (a synthetic stream of zeros), the gaps between
	// the script's words are the silence. It is looked at once per call of
	// [Call.Audio], so big messages delay endpoints as they do at real servers.
	Endpointing time.Duration
	// Window is the longest stretch of audio kept open: past it, what was heard
	// becomes final without an endpoint. 0 means no limit.
	Window time.Duration
	// Lockstep servers handle one message after another: while the answer to a
	// force is outstanding, no further message is looked at. Other servers keep
	// counting audio meanwhile but say nothing until the answer is out.
	Lockstep bool
}

// NoPartials is the PartialEvery of a stream that is never told partials.
const NoPartials time.Duration = -1

// Hypothesis is what was heard since the last final.
type Hypothesis struct {
	Words []Word
	// Start and End bound the audio covered; Start is the last final's End.
	Start, End time.Duration
}

// Text joins the words with spaces.
func (h Hypothesis) Text() string { return joinWords(h.Words) }

// Final is a stretch of audio whose words are settled. Windows of finals are
// contiguous: Start is the End of the final before.
type Final struct {
	Cause Cause
	// ID is what the stream gave to [Call.Force].
	ID string
	// Ack marks the end of the answer to a force: the message that carries the
	// vendor's closing mark. It is false on the earlier parts of an answer, and on
	// all of it under the fault "no-ack"; a vendor whose text is itself the closing
	// mark then says nothing.
	Ack        bool
	Words      []Word // may be empty
	Start, End time.Duration
	// Revises tells that the words replace those of the final before it, which had
	// the same ID and was closed. Only streams of a [Reviser] are told.
	Revises bool
}

// Text joins the words with spaces.
func (f Final) Text() string { return joinWords(f.Words) }

// Cause is why text became final.
type Cause int

// The causes: silence, the window limit, [Call.Force] and [Call.Finish].
const (
	CauseEndpoint Cause = iota + 1
	CauseWindow
	CauseForce
	CauseFinish
)

// Word is one recognised word; times are audio positions.
type Word struct {
	Text       string
	Start, End time.Duration
}

func joinWords(words []Word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

// GoodKey tells whether emulators accept an API key: any that is not empty and
// does not begin with "bad".
func GoodKey(key string) bool { return key != "" && !strings.HasPrefix(key, "bad") }
