package endpoint

import (
	"math"
	"time"
)

// Class says how a turn ended. Every scheduled turn has exactly one; when
// several could hold, the first in the order below does.
type Class string

// The classes in the order in which they are tested.
const (
	Cancelled     Class = "cancelled"      // the user stopped the session
	ConnectFailed Class = "connect_failed" // no stream was opened
	Rejected      Class = "rejected"       // the provider refused to serve us
	Disconnected  Class = "disconnected"   // the stream broke before the answer
	Stalled       Class = "stalled"        // a continuous provider fell silent during speech
	ClientInvalid Class = "client_invalid" // our own lateness spoiled the turn
	OK            Class = "ok"             // final text after the turn's end
	EarlyFinal    Class = "early_final"    // everything was final before the turn's end
	TailLost      Class = "tail_lost"      // acknowledged, but text stayed unfinished
	EmptyAck      Class = "empty_ack"      // acknowledged, and no text at all
	LateFinal     Class = "late_final"     // natural: a final after the window
	LatePartial   Class = "late_partial"   // natural: a partial after the window, no final
	EarlyPartial  Class = "early_partial"  // natural: nothing but a partial before
	NoAnswer      Class = "no_answer"      // nothing until the deadline
	NoSpeech      Class = "no_speech"      // the item has no turn
)

// Classes lists all classes in their order.
func Classes() []Class {
	return []Class{Cancelled, ConnectFailed, Rejected, Disconnected, Stalled, ClientInvalid,
		OK, EarlyFinal, TailLost, EmptyAck, LateFinal, LatePartial, EarlyPartial, NoAnswer, NoSpeech}
}

// Measured tells whether the class is a valid measurement of an answer; all
// others make a probe exit with status 1, or 4 for client_invalid.
func (c Class) Measured() bool {
	switch c {
	case OK, EarlyFinal, LateFinal, LatePartial, EarlyPartial:
		return true
	}
	return false
}

// Asked tells whether the turn's window ran its course, so that a missing
// acknowledgement is the provider's doing.
func (c Class) Asked() bool {
	switch c {
	case OK, EarlyFinal, TailLost, EmptyAck, NoAnswer:
		return true
	}
	return false
}

// Scored tells whether the text held at the end counts for the word error rate.
// Only turns in which the provider never had its chance are left out, so that
// providers that lose turns are not favoured.
func (c Class) Scored() bool {
	switch c {
	case Cancelled, ConnectFailed, Rejected, ClientInvalid:
		return false
	}
	return true
}

// Ack says how a forced endpoint was acknowledged.
type Ack string

// The acknowledgements.
const (
	AckText     Ack = "text"     // answered with text
	AckEmpty    Ack = "empty"    // answered without text
	AckNegative Ack = "negative" // refused: nothing to commit, no active turn …
	AckNone     Ack = "none"     // no closing event; always so with natural endpointing
)

// Millis is a duration in milliseconds with a resolution of one microsecond.
type Millis float64

// ToMillis converts a duration.
func ToMillis(d time.Duration) Millis {
	return Millis(math.Round(float64(d)/1e3) / 1e3)
}

func millis(d time.Duration) *Millis {
	m := ToMillis(d)
	return &m
}

// Outcome is what one turn came to. Latencies are nil where they do not exist;
// they are signed and never clamped. Texts are views of the whole transcript of
// the session at one instant.
type Outcome struct {
	// Turn is the index of the turn in the item, -1 for an item without turns.
	Turn  int   `json:"turn"`
	Class Class `json:"outcome"`
	Ack   Ack   `json:"ack"`
	// Forced tells whether the endpoint was forced.
	Forced bool `json:"forced"`
	// Reason is the provider's or the system's word for a failed session, or the
	// provider's own label of the closing event.
	Reason string `json:"reason,omitempty"`

	// TTF is the last text-bearing final in the window − T0: the instant when the
	// complete answer is there. TTFFirst is the first such final − T0.
	TTF      *Millis `json:"ttf_ms"`
	TTFFirst *Millis `json:"ttf_first_ms"`
	// TTFP is the first text-bearing event, partial or final, at or after F0 − T0.
	TTFP *Millis `json:"ttfp_ms"`
	// AckMS is the closing event − T0.
	AckMS *Millis `json:"ack_ms"`
	// Wait is what an agent would have waited: max(0, TTF).
	Wait *Millis `json:"wait_ms"`
	// TTFFromSE is the instant of TTF − spoken(SE): what the user waits.
	TTFFromSE *Millis `json:"ttf_from_se_ms"`
	// CensoredAt is set where the answer is only known to be later than this.
	CensoredAt *Millis `json:"censored_at_ms"`
	// Hangover is EOS − SE, ForceDelay T0 − spoken(EOS).
	Hangover   *Millis `json:"hangover_ms"`
	ForceDelay *Millis `json:"force_delay_ms"`
	// FirstPartial is the first text-bearing event after the turn's start −
	// spoken(Start).
	FirstPartial *Millis `json:"first_partial_ms"`
	// SpeechEnd is SE as a position in the item, SpeechEndSpread the width of its
	// uncertainty.
	SpeechEnd       *Millis `json:"se_ms"`
	SpeechEndSpread *Millis `json:"se_spread_ms"`

	// FinalText is the text that counts for the word error rate: the final text
	// at TTF, or all that was held when the turn ended without one.
	FinalText string `json:"final_text"`
	// FirstFinalText is the final text at TTFFirst, PartialText all text at TTFP.
	FirstFinalText string `json:"first_final_text"`
	PartialText    string `json:"partial_text"`
}

// Result is what a session came to.
type Result struct {
	// Turns has one outcome for each scheduled turn, in order; one of class
	// no_speech (or of the session's failure) for an item without turns.
	Turns []Outcome
	// SettledText is all text at the session's end; what it has beyond the last
	// turn's FinalText came late.
	SettledText string
	// Rewritten and Revised are the transcript's counts over the whole session.
	Rewritten, Revised int
	// UnsolicitedFinals are text-bearing finals outside every forced window,
	// UnsolicitedAcks closing events that no open force asked for. Both are 0 with
	// natural endpointing.
	UnsolicitedFinals, UnsolicitedAcks int
	// DecodeErrors counts frames that the dialect could not read.
	DecodeErrors int
}
