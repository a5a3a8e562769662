package record

import "time"

// Version is the format version that [Write] writes and the newest that [Read]
// accepts. It grows when a reader of the old version would misread a record.
const Version = 1

// Session is the whole record of one item streamed once to one target.
type Session struct {
	Open    Open
	Turns   Turns
	Connect Connect
	Sent    Sent
	// Chunks lists every audio write; only filled when a trace was asked for.
	Chunks []Chunk
	// Marks are the turn ends that were reached, in order of sending.
	Marks []Mark
	// Events are the received frames in order of arrival.
	Events []Event
	// Delays are the instants at which this machine was late, by [DelayFloor] or
	// more.
	Delays []Delay
	Client Client
	Close  Close
}

// Open says what was measured, before anything was sent.
type Open struct {
	// Session identifies the record inside its run: target/item.repeat.
	Session string `json:"session"`
	Target  Target `json:"target"`
	Item    Item   `json:"item"`
	// Repeat counts from 1.
	Repeat int `json:"repeat"`
	// Fingerprint hashes everything that may change the answer: target,
	// parameters, dialect version, item content and VAD result.
	Fingerprint string `json:"fingerprint"`
	// T0Wall is t0 on the wall clock, for people and for ordering sessions; no
	// duration is ever computed from it. It is the start of the session when t0
	// was never reached.
	T0Wall time.Time `json:"t0_wall"`
	// T0Mono is t0 on the machine's monotonic clock in nanoseconds. It joins a
	// record with the truth log of an emulator on the same machine.
	T0Mono int64 `json:"t0_mono_ns"`
	// Software is the version of sttbench that made the record.
	Software string `json:"software"`
}

// Target is the provider side of a session.
type Target struct {
	Name     string            `json:"name"`
	Provider string            `json:"provider"`
	Dialect  string            `json:"dialect"` // version of the wire dialect
	Model    string            `json:"model"`
	Language string            `json:"language,omitempty"`
	Endpoint string            `json:"endpoint"` // URL without secrets
	Params   map[string]string `json:"params,omitempty"`
	// Forced tells whether turn ends were forced (true) or left to the provider.
	Forced bool `json:"forced"`
	// EveryTurn tells whether each turn is marked (true) or only the last.
	EveryTurn bool `json:"every_turn"`
	// Continuous providers send something all the time while audio flows, so
	// that their silence is a stall.
	Continuous bool `json:"continuous,omitempty"`
	SampleRate int  `json:"sample_rate"` // Hz
	// Chunk is the audio duration of one paced write.
	Chunk time.Duration `json:"chunk_ns"`
	// Deadline is how long an answer is waited for after a turn end.
	Deadline time.Duration `json:"deadline_ns"`
}

// Item is the audio side of a session.
type Item struct {
	Dataset   string        `json:"dataset"`
	ID        string        `json:"id"`
	Recording string        `json:"recording"`
	Hash      string        `json:"hash"` // of the file's bytes, "sha256:<hex>"
	Duration  time.Duration `json:"duration_ns"`
	Reference string        `json:"reference"`
	// HasReference tells an empty reference (nothing is said) from none.
	HasReference bool     `json:"has_reference"`
	Language     string   `json:"language,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	Weight       float64  `json:"weight"`
}

// Turns holds the local VAD's view of the item.
type Turns struct {
	Model  string `json:"model"`  // hash of the VAD model
	Params string `json:"params"` // canonical text of the VAD parameters
	List   []Turn `json:"turns"`
}

// Turn is one stretch of speech. All fields are audio positions.
type Turn struct {
	Start time.Duration `json:"start_ns"`
	SE    time.Duration `json:"se_ns"`  // speech end: the closing silence begins here
	EOS   time.Duration `json:"eos_ns"` // first position at which a causal VAD knows it
	// SELow and SEHigh bound SE over the thresholds the VAD was varied by.
	SELow  time.Duration `json:"se_low_ns"`
	SEHigh time.Duration `json:"se_high_ns"`
}

// Hangover is the price of the local endpointing policy: EOS − SE.
func (t Turn) Hangover() time.Duration { return t.EOS - t.SE }

// Connect holds the phases of the connection. A phase that did not happen is
// zero; phases are durations, not stamps.
type Connect struct {
	Prepare time.Duration `json:"prepare_ns"` // HTTP requests before the dial
	DNS     time.Duration `json:"dns_ns"`
	TCP     time.Duration `json:"tcp_ns"`
	TLS     time.Duration `json:"tls_ns"`
	Upgrade time.Duration `json:"upgrade_ns"`
	// Ready is the time from the open transport to the provider's ready event.
	Ready time.Duration `json:"ready_ns"`
	// Start is the stamp at which connecting began (negative).
	Start   time.Duration `json:"start_ns"`
	Address string        `json:"address,omitempty"` // resolved peer, host:port
	// RTT is the kernel's smoothed round-trip time of the TCP connection, to the
	// provider's edge; zero where the system does not tell.
	RTT time.Duration `json:"rtt_ns,omitempty"`
	// Stamps names the receive stamp that latencies use: "kernel" or "user".
	Stamps string `json:"stamps"`
	// Warm tells whether an earlier connection of this process reached the same
	// address within the last minutes.
	Warm bool `json:"warm"`
}

// Sent sums up the audio writes. Lateness is write start − due; blocked is
// write return − write start, which is the peer's, the network's or the
// kernel's doing and never counted as lateness.
type Sent struct {
	Chunks      int           `json:"chunks"`
	Bytes       int64         `json:"bytes"` // payload bytes of all audio messages
	Audio       time.Duration `json:"audio_ns"`
	Silence     time.Duration `json:"silence_ns"` // streamed after the item's end, part of Audio
	LateP50     time.Duration `json:"late_p50_ns"`
	LateP99     time.Duration `json:"late_p99_ns"`
	LateMax     time.Duration `json:"late_max_ns"`
	BlockedP50  time.Duration `json:"blocked_p50_ns"`
	BlockedP99  time.Duration `json:"blocked_p99_ns"`
	BlockedMax  time.Duration `json:"blocked_max_ns"`
	KeepAlives  int           `json:"keep_alives,omitempty"`
	SilenceKind string        `json:"silence_kind,omitempty"` // zeros
}

// Chunk is one audio write.
type Chunk struct {
	Due      time.Duration `json:"due_ns"`
	Start    time.Duration `json:"start_ns"`
	Return   time.Duration `json:"return_ns"`
	AudioEnd time.Duration `json:"audio_end_ns"`
	Bytes    int           `json:"bytes"`
}

// Mark is the place in the stream where a turn's end was reached: the forced
// endpoint, or, with natural endpointing, the write that carried EOS.
type Mark struct {
	Turn int `json:"turn"` // index into Turns.List
	// Forced tells whether a forced endpoint was sent here. It is false with
	// natural endpointing and where the provider cannot be forced.
	Forced bool `json:"forced"`
	// F0 is the stamp before the force was written: nothing before it can be an
	// answer. T0 is the stamp after it; latencies count from here. With natural
	// endpointing they enclose the write that carried EOS.
	F0 time.Duration `json:"f0_ns"`
	T0 time.Duration `json:"t0_ns"`
	// AudioEnd is the audio position sent before the mark.
	AudioEnd time.Duration `json:"audio_end_ns"`
}

// DelayFloor is the least delay that a record lists.
const DelayFloor = 5 * time.Millisecond

// MaxDelays is the largest number of delays that a record lists.
const MaxDelays = 10_000

// Delay is an instant at which this machine was late.
type Delay struct {
	// Kind is what was late: a write of audio, or the canary, a timer that does
	// nothing but notice that goroutines are not run when they should be.
	Kind DelayKind     `json:"kind"`
	At   time.Duration `json:"at_ns"` // when it was due
	By   time.Duration `json:"by_ns"`
}

// DelayKind is what was late.
type DelayKind string

// The kinds of delay.
const (
	DelayWrite  DelayKind = "write"
	DelayCanary DelayKind = "canary"
)

// Client is how the measuring process fared during the session. Other sessions of
// the process are in it.
type Client struct {
	// GC is the time that the garbage collector stopped the process for.
	GC time.Duration `json:"gc_ns"`
	// CPU is the process's processor time over the session's duration: 1 is one
	// busy core.
	CPU float64 `json:"cpu"`
	// Cores is the number of cores it may use.
	Cores int `json:"cores"`
	// Steal is the share of this machine's processor time that its host took, from
	// 0 to 1; nil where the system does not tell.
	Steal *float64 `json:"steal,omitempty"`
}

// Event is one received frame: its stamps, its bytes and what the dialect made
// of it. Frames that one read brought share their stamps.
type Event struct {
	// Kernel is the kernel's receive stamp, nil where there is none.
	Kernel *time.Duration `json:"kernel_ns,omitempty"`
	// User is the stamp taken when the read returned, before parsing.
	User time.Duration `json:"user_ns"`
	Op   Op            `json:"op"`
	// Bytes is the frame's full payload size; Raw may be shorter.
	Bytes int `json:"bytes"`
	// Raw holds the payload's first bytes, as text. It is empty for binary frames
	// and for text that was not valid UTF-8 (see RawBase64).
	Raw       string `json:"raw,omitempty"`
	RawBase64 []byte `json:"raw_base64,omitempty"`
	// Code is the close code of a close frame.
	Code int `json:"code,omitempty"`
	// Decoded is what the dialect read; empty for frames that say nothing.
	Decoded []Decoded `json:"decoded,omitempty"`
	// Error says why the dialect could not decode the frame.
	Error string `json:"error,omitempty"`
}

// At is the receive stamp that latencies use: the kernel's where there is one.
func (e Event) At() time.Duration {
	if e.Kernel != nil {
		return *e.Kernel
	}
	return e.User
}

// Op is the kind of a frame on the wire.
type Op string

// The frame kinds. Proto is a gRPC message; HalfClose ends our side of a stream.
const (
	Text      Op = "text"
	Binary    Op = "binary"
	Proto     Op = "proto"
	Ping      Op = "ping"
	HalfClose Op = "half_close"
	CloseOp   Op = "close"
)

// Decoded is the meaning of a received frame in the words that all providers
// share.
type Decoded struct {
	Kind Kind `json:"kind"`
	// Segment is the unit of text it belongs to (turn index, item id, window
	// start …); "" where the stream is one segment. The first event that names a
	// segment fixes the segment's place in the transcript.
	Segment string `json:"segment,omitempty"`
	// Mode and Join say how Text meets what the segment held before.
	Mode  Mode   `json:"mode,omitempty"`
	Join  Join   `json:"join,omitempty"`
	Text  string `json:"text,omitempty"`
	Words []Word `json:"words,omitempty"`
	// Key ties an answer to a forced endpoint (item id, flush id …).
	Key string `json:"key,omitempty"`
	// Closes marks the event that ends the answer to a forced endpoint.
	Closes bool `json:"closes,omitempty"`
	// Negative marks a refusal to answer: nothing to commit, no active turn …
	Negative bool `json:"negative,omitempty"`
	// Cause is the provider's own label: speech_final, from_finalize …
	Cause string `json:"cause,omitempty"`
	// Reject is set on errors by which the provider refuses to serve us.
	Reject Reject `json:"reject,omitempty"`
	// AudioStart and AudioEnd bound the audio the text covers; nil where the
	// provider does not say.
	AudioStart *time.Duration `json:"audio_start_ns,omitempty"`
	AudioEnd   *time.Duration `json:"audio_end_ns,omitempty"`
}

// TextBearing tells whether the event is a partial or a final with text in it.
func (d Decoded) TextBearing() bool {
	return (d.Kind == Partial || d.Kind == Final) && hasText(d.Text)
}

// Kind is the meaning of a received event.
type Kind string

// The event kinds.
const (
	Ready         Kind = "ready"   // audio may start
	Partial       Kind = "partial" // text that may still change
	Final         Kind = "final"   // text marked as final
	Ack           Kind = "ack"     // answer to a force without text of its own
	EndOfTurn     Kind = "end_of_turn"
	SpeechStarted Kind = "speech_started"
	Reopen        Kind = "reopen"  // the provider asks for a new stream
	Warning       Kind = "warning" // worth keeping, changes nothing
	Error         Kind = "error"   // the session cannot go on
	Done          Kind = "done"    // nothing will follow
)

// Mode says how an event's text meets the text its segment already holds.
type Mode string

// The modes: Replace sets the text, Append extends it.
const (
	Replace Mode = "replace"
	Append  Mode = "append"
)

// Join is the rule by which texts are put together.
type Join string

// The join rules: JoinSpace puts one space between non-empty texts, Verbatim
// nothing.
const (
	JoinSpace Join = "space"
	Verbatim  Join = "verbatim"
)

// Word is one recognised word; times are audio positions, nil where the
// provider gives none.
type Word struct {
	Text       string         `json:"w"`
	Start      *time.Duration `json:"start_ns,omitempty"`
	End        *time.Duration `json:"end_ns,omitempty"`
	Confidence *float64       `json:"conf,omitempty"` // as the provider gives it
}

// Reject is the reason for which a provider refuses to serve a session.
type Reject string

// The reasons. RejectServer is the provider's own failure (5xx); it counts as a
// failed connection, not as a refusal.
const (
	RejectAuth       Reject = "auth"
	RejectQuota      Reject = "quota"
	RejectRate       Reject = "rate"
	RejectBadRequest Reject = "bad_request"
	RejectServer     Reject = "server"
)

// Close says how the session ended.
type Close struct {
	At  time.Duration `json:"at_ns"`
	How How           `json:"how"`
	// Phase is where a failed session failed: prepare, dns, tcp, tls, upgrade,
	// ready, stream or finish.
	Phase Phase `json:"phase,omitempty"`
	// Reject is set when the provider refused to serve the session.
	Reject Reject `json:"reject,omitempty"`
	// Detail is the error text, without secrets.
	Detail string `json:"detail,omitempty"`
	// Request is the provider's id of a refused request, for its support.
	Request string `json:"request,omitempty"`
	// Status is the HTTP status of a refused request, Code the WebSocket close
	// code received; 0 where there was none.
	Status int `json:"status,omitempty"`
	Code   int `json:"code,omitempty"`
	// RetryAfter is the provider's wish, 0 where it gave none.
	RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
}

// How is the way in which a session ended.
type How string

// The ways. Settled: every turn was answered or ran out of time, and we closed.
// Remote: the peer closed or broke the connection before that. Failed: any other
// error. Cancelled: the user stopped it.
const (
	Settled   How = "settled"
	Remote    How = "remote"
	Failed    How = "failed"
	Cancelled How = "cancelled"
)

// Phase names a part of a session.
type Phase string

// The phases in their order.
const (
	PhasePrepare Phase = "prepare"
	PhaseDNS     Phase = "dns"
	PhaseTCP     Phase = "tcp"
	PhaseTLS     Phase = "tls"
	PhaseUpgrade Phase = "upgrade"
	PhaseReady   Phase = "ready"
	PhaseStream  Phase = "stream"
	PhaseFinish  Phase = "finish"
)
