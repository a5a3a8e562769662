package streamer

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"sttbench/record"
)

// canary is a timer that does nothing but notice that it is not run when it
// should be: what delays it delays a reader's stamp as well.
type canary struct {
	clock clock
	stop  chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	delays []record.Delay // stamps of the clock; the oldest half is dropped when full
}

const canaryPeriod = 10 * time.Millisecond

func newCanary(c clock) *canary {
	k := &canary{clock: c, stop: make(chan struct{}), done: make(chan struct{})}
	go k.loop()
	return k
}

func (k *canary) loop() {
	defer close(k.done)
	timer := time.NewTimer(canaryPeriod)
	defer timer.Stop()
	due := k.clock.now() + canaryPeriod
	for {
		select {
		case <-timer.C:
		case <-k.stop:
			return
		}
		now := k.clock.now()
		if by := now - due; by >= record.DelayFloor {
			k.mu.Lock()
			if len(k.delays) == record.MaxDelays {
				k.delays = append(k.delays[:0], k.delays[len(k.delays)/2:]...)
			}
			k.delays = append(k.delays, record.Delay{Kind: record.DelayCanary, At: due, By: by})
			k.mu.Unlock()
		}
		due = now + canaryPeriod
		timer.Reset(canaryPeriod)
	}
}

// since lists the delays that ended after a stamp.
func (k *canary) since(from time.Duration) []record.Delay {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []record.Delay
	for _, d := range k.delays {
		if d.At+d.By >= from {
			list = append(list, d)
		}
	}
	return list
}

func (k *canary) end() {
	close(k.stop)
	<-k.done
}

// usage is what the process and the machine have used so far.
type usage struct {
	at           time.Duration // stamp of the clock
	gc, cpu      time.Duration
	steal, total uint64 // ticks of all processors; total 0: not known
}

func (c clock) usage() usage {
	u := usage{at: c.now(), cpu: processTime()}
	u.steal, u.total = machineTicks()
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.gc = gc.PauseTotal
	return u
}

// client sums up the time between two readings.
func client(from, to usage) record.Client {
	c := record.Client{GC: to.gc - from.gc, Cores: runtime.GOMAXPROCS(0)}
	if wall := to.at - from.at; wall > 0 {
		c.CPU = float64((to.cpu - from.cpu).Milliseconds()) / float64(max(1, wall.Milliseconds()))
	}
	if ticks := to.total - from.total; from.total > 0 && ticks > 0 {
		steal := float64(to.steal-from.steal) / float64(ticks)
		c.Steal = &steal
	}
	return c
}

// lateWrites lists the audio writes that began too late by our own doing: time
// during which the write before was blocked is the peer's.
func lateWrites(chunks []record.Chunk) []record.Delay {
	var list []record.Delay
	free := time.Duration(-1 << 63) // when the write before had returned
	for _, c := range chunks {
		if by := c.Start - max(c.Due, free); by >= record.DelayFloor && len(list) < record.MaxDelays {
			list = append(list, record.Delay{Kind: record.DelayWrite, At: c.Start - by, By: by})
		}
		free = c.Return
	}
	return list
}
