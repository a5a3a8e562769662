// Package record holds the session record: everything that was sent to and
// received from one provider while one item was streamed once, with the stamp
// of each.
//
// The record is the product. Outcomes, latencies, texts and scores are pure
// functions of it, so a changed rule is a replay and never a new call. The
// package therefore depends on nothing else in this module, reads no clock and
// drops nothing: a session that failed half-way is a record too.
//
// All stamps are nanoseconds since t0 on the monotonic clock of the measuring
// machine; t0 is the instant at which the first audio sample "leaves the
// speaker's mouth". Stamps before t0 (connecting) are negative. All audio
// positions are nanoseconds since the first sample of the item. Because both
// count from t0, the instant at which audio position s is spoken is the stamp s.
//
// On disk a record is JSON Lines; see [Write] and [Read].
package record
