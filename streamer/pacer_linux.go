package streamer

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pacer runs tasks on one thread of its own at their instants. A Go timer is late
// by more than half a millisecond at the median, because the netpoller waits in
// whole milliseconds; a thread that sleeps in the kernel with the finest timer
// slack and spins for the last stretch is not (measurements: docs/PERFORMANCE.md).
type pacer struct {
	clock clock
	wake  int // eventfd

	mu      sync.Mutex
	tasks   schedule
	until   time.Duration // what the thread sleeps for; guarded by mu
	stopped bool
	done    chan struct{}
}

// How long before a deadline the thread stops sleeping: a processor that was idle
// for long takes longer to wake up.
const (
	spinShort = 40 * time.Microsecond
	spinLong  = 200 * time.Microsecond
	longSleep = time.Millisecond
)

// newPacer starts the thread; nil where the system does not allow it.
func newPacer(c clock) *pacer {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	p := &pacer{clock: c, wake: fd, done: make(chan struct{})}
	go p.loop()
	return p
}

// arm runs t.run on the pacer's thread when t.at has come.
func (p *pacer) arm(t *task) {
	p.mu.Lock()
	p.tasks.arm(t)
	early := t.at < p.until
	p.mu.Unlock()
	if early {
		p.poke()
	}
}

// disarm takes a task back; false when it has run, or is about to.
func (p *pacer) disarm(t *task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tasks.disarm(t)
}

// stop ends the thread. No task may be armed any more.
func (p *pacer) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.poke()
	<-p.done
	unix.Close(p.wake)
}

func (p *pacer) poke() {
	one := [8]byte{0: 1}
	_, _ = unix.Write(p.wake, one[:]) // a full counter wakes as well
}

func (p *pacer) loop() {
	runtime.LockOSThread() // the thread's timer slack is its own; it ends with us
	defer close(p.done)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	fds := []unix.PollFd{{Fd: int32(p.wake), Events: unix.POLLIN}}
	var ignored [8]byte
	for {
		p.mu.Lock()
		if p.stopped {
			p.mu.Unlock()
			return
		}
		now := p.clock.now()
		t := p.tasks.pop(now)
		var sleep time.Duration
		if t == nil {
			sleep = p.sleepFor(now)
		}
		p.mu.Unlock()
		switch {
		case t != nil:
			t.run()
		case sleep > 0:
			var timeout *unix.Timespec
			if sleep < forever {
				ts := unix.NsecToTimespec(int64(sleep))
				timeout = &ts
			}
			fds[0].Revents = 0
			if n, _ := unix.Ppoll(fds, timeout, nil); n > 0 {
				_, _ = unix.Read(p.wake, ignored[:])
			}
		}
	}
}

// forever is the sleep of a pacer without tasks.
const forever = time.Duration(1<<63 - 1)

// sleepFor decides how long to sleep, 0 for the last stretch that is spun. p.mu is
// held.
func (p *pacer) sleepFor(now time.Duration) time.Duration {
	next := p.tasks.first()
	if next == nil {
		p.until = forever
		return forever
	}
	p.until = next.at
	gap := next.at - now
	spin := spinShort
	if gap > longSleep {
		spin = spinLong
	}
	return max(0, gap-spin)
}
