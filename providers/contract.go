package providers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"sttbench/record"
)

// Dialect is one vendor's streaming protocol. Implementations are stateless
// values; the state of a stream lives in the Session.
type Dialect interface {
	// Describe says what the protocol can do and where that is written.
	Describe() Description
	// Open validates the configuration and starts one stream's state. It returns
	// a *[ConfigError] for everything that the user can mend. All random ids come
	// from rnd, so that a session can be reproduced.
	Open(cfg Config, rnd *rand.Rand) (Session, error)
}

// Session is the state of one stream. It is not safe for concurrent use by more
// than two goroutines: Audio, Turn, KeepAlive and Finish may run beside Decode,
// because the pacing path takes no lock that decoding holds. An implementation
// shares state between the two halves only through atomics. The frames of one
// stream are written in the order of the calls that returned them, replies
// excepted, which are written as soon as the wire is free.
type Session interface {
	// Next returns the next step of connecting: nil asks for the first one,
	// otherwise resp is the answer to the step before. A dial that was refused
	// with an HTTP answer is passed in as well; the session then returns a
	// *[Rejection] or another step. After a dial that succeeded Next is not called
	// again. now is for protocols that sign or date a request.
	Next(now time.Time, resp *Response) (Step, error)
	// Audio frames one block of PCM, signed 16 bit little endian mono at
	// Config.SampleRate; end is the audio position after it. The frames may alias
	// pcm until the next call.
	Audio(now time.Time, pcm []byte, end time.Duration) ([]Frame, error)
	// Turn announces the start of a turn or its end; the end is the forced
	// endpoint. No frames and no error mean that the edge needs no message;
	// ErrUnsupported on End means that this stream cannot be forced, and the turn
	// is then measured as with natural endpointing.
	Turn(now time.Time, e Edge, s Span) ([]Frame, error)
	// KeepAlive returns what keeps an idle stream open, nil where nothing does.
	KeepAlive(now time.Time) []Frame
	// Finish asks for a graceful end; the streamer then reads until Done, the
	// peer's close or a deadline.
	Finish(now time.Time) []Frame
	// Decode reads one received frame, close frames included. Replies are sent as
	// they are. An error says that the frame is malformed; the stream goes on.
	Decode(now time.Time, f Frame) (events []record.Decoded, replies []Frame, err error)
}

// ErrUnsupported is returned by [Session.Turn] where a protocol has no message
// for an edge.
var ErrUnsupported = errors.New("not supported by this protocol")

// Config is what a stream is opened with.
type Config struct {
	// Endpoint replaces the vendor's URL (scheme, host and path prefix); "" means
	// the vendor's own.
	Endpoint string
	Model    string // "" means the default model
	Language string // BCP 47; "" means the vendor's default
	// SampleRate of the audio in Hz; one of Description.SampleRates.
	SampleRate int
	// Forced asks for the vendor's external-VAD preset, else for its own
	// endpointing.
	Forced bool
	// Params are vendor parameters as the user wrote them; they win over presets.
	Params map[string]string
	// Key is the API key; empty where none is needed.
	Key Secret
}

// Secret is a credential. It prints as "[secret]" under every verb and in JSON,
// so that it cannot reach a log, an error or a record by accident; Reveal is the
// only way to its text.
type Secret struct{ text string }

// NewSecret wraps a credential.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the credential's text, for the request that needs it.
func (s Secret) Reveal() string { return s.text }

// Empty tells whether there is no credential.
func (s Secret) Empty() bool { return s.text == "" }

// String implements fmt.Stringer.
func (s Secret) String() string { return "[secret]" }

// Format implements fmt.Formatter, for verbs that ignore String (%#v, %x …).
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// MarshalText implements encoding.TextMarshaler, and so covers JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Step is one step of connecting: an HTTP request, or the dial that opens the
// stream. Exactly one of the two is set.
type Step struct {
	Request *Request
	Dial    *Dial
}

// Request is an HTTP request before the dial (a token, a session to create).
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// Response is an HTTP answer; the body is cut at 64 KiB.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Dial opens the stream.
type Dial struct {
	URL          string // ws:// or wss://
	Header       http.Header
	Subprotocols []string
	// Hello is sent as soon as the transport is open.
	Hello []Frame
	// AwaitReady tells that audio must wait for a Ready event; otherwise the
	// session is ready when the transport is open.
	AwaitReady bool
}

// Edge is a boundary of a turn.
type Edge int

// The edges: End is the forced endpoint.
const (
	Start Edge = iota + 1
	End
)

// Span tells a dialect about the turn whose edge it is told of. Positions are
// audio positions; SE and EOS are zero at a Start edge.
type Span struct {
	Start, SE, EOS time.Duration
	Sent           time.Duration // audio sent so far
}

// Frame is one message on the wire.
type Frame struct {
	Op   record.Op
	Data []byte
	// AudioEnd is the audio position after this frame; zero for frames without
	// audio.
	AudioEnd time.Duration
	// Code is the close code of a close frame, whose Data is the reason.
	Code int
}

// TextFrame makes a text frame without audio.
func TextFrame(data string) Frame { return Frame{Op: record.Text, Data: []byte(data)} }

// BinaryFrame makes a binary frame without audio.
func BinaryFrame(data []byte) Frame { return Frame{Op: record.Binary, Data: data} }

// ConfigError is a configuration that the vendor would refuse or misread.
type ConfigError struct {
	Provider string
	Field    string // model, language, key, param endpointing …
	Problem  string
	Hint     string // the way out; may be empty
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Provider, e.Field, e.Problem)
}

// Rejection is a refusal to serve, told before the stream opened.
type Rejection struct {
	Reason     record.Reject
	Status     int
	Detail     string // the vendor's words, without secrets
	Request    string // the vendor's id of the request, for its support; may be empty
	RetryAfter time.Duration
}

func (e *Rejection) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("refused (%s): %s", e.Reason, e.Detail)
	}
	return fmt.Sprintf("refused with HTTP %d (%s): %s", e.Status, e.Reason, e.Detail)
}
