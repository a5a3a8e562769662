// Package calibrate measures the measuring: how late this machine's streams are,
// and by how much the times to final that sttbench reports differ from the truth.
//
// It streams to an emulator in a process of its own, which answers forced
// endpoints after delays that it draws and notes when it received and sent what.
// Both sides stamp on CLOCK_MONOTONIC, so their notes can be laid side by side.
// The judgement of our side is the ordinary one of package endpoint: what is
// compared is the number a report would print.
//
// The package takes the position that an answer is either compared or counted as
// unmatched, that figures of a machine that was not quiet are shown with the proof
// of it and not dropped, and that what the machine itself costs must stand beside
// them: a small exchange over a bare TCP connection, timed in the same seconds.
//
// [Bench.Run] measures; [Evaluate] and everything it uses are pure.
package calibrate
