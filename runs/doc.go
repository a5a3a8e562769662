// Package runs turns a configuration into sessions and sessions into an
// aggregate.
//
// A run is a directory. What was streamed lies there as one file per session,
// written under a temporary name and renamed, so that a run killed at any instant
// can be resumed and loses at most the sessions in flight. Everything else in the
// directory (outcomes, scores, aggregate) is computed from those files and the
// configuration alone, by the same code whether the run has just ended or is
// replayed a year later, and gives the same bytes.
//
// Nothing heavy runs beside a session: items are decoded and their turns found
// before the first session starts, and scoring begins after the last has ended.
package runs
