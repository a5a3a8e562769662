//go:build !linux

package streamer

// pacer exists on Linux only; elsewhere each session waits by a timer of its own.
type pacer struct{}

func newPacer(clock) *pacer { return nil }

func (*pacer) arm(*task)         {}
func (*pacer) disarm(*task) bool { return false }
func (*pacer) stop()             {}
