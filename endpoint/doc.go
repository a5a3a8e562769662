// Package endpoint turns a session record into outcomes: the class of each
// turn, its latencies and the texts that were there at those instants.
//
// Everything here is a pure function of the record and the rules. No clock is
// read, nothing is clamped, dropped or retried: negative latencies stay
// negative, a turn that ran out of time is censored at its deadline and stays in
// the count, and every scheduled turn gets exactly one class. The same rules
// decide, while a session runs, when it has said all it will ([Settled]), so
// that streaming and judging cannot disagree.
//
// docs/METHOD.md defines every term; the rules follow Artificial Analysis'
// streaming methodology where it is explicit and close its gaps where it is not.
package endpoint
