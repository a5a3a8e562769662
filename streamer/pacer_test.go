package streamer

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever is armed and disarmed, tasks come out when they are due, earliest
// first, each once.
func TestScheduleOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 3))
	for range 200 {
		var s schedule
		armed := map[*task]bool{}
		var all []*task
		now := time.Duration(0)
		for range 300 {
			switch rnd.IntN(4) {
			case 0, 1:
				task := &task{at: now + time.Duration(rnd.IntN(1000)), index: -1}
				s.arm(task)
				armed[task] = true
				all = append(all, task)
			case 2:
				if len(all) > 0 {
					task := all[rnd.IntN(len(all))]
					if got := s.disarm(task); got != armed[task] {
						t.Fatalf("disarm of a task that is armed: %v: %v", armed[task], got)
					}
					delete(armed, task)
				}
			case 3:
				now += time.Duration(rnd.IntN(500))
				last := time.Duration(-1)
				for task := s.pop(now); task != nil; task = s.pop(now) {
					if !armed[task] || task.at > now || task.at < last {
						t.Fatalf("popped a task due %v at %v after one due %v, armed %v", task.at, now, last, armed[task])
					}
					last = task.at
					delete(armed, task)
				}
				for task := range armed {
					if task.at <= now {
						t.Fatalf("a task due %v was not popped at %v", task.at, now)
					}
				}
			}
		}
	}
}

func TestSessionsSpreadOverTheCycle(t *testing.T) {
	var phases []time.Duration
	for range 64 {
		p := emptiest(phases)
		if p < 0 || p >= phaseCycle {
			t.Fatalf("phase %v is outside the cycle", p)
		}
		phases = append(phases, p)
	}
	slices.Sort(phases)
	for i := 1; i < len(phases); i++ {
		if gap := phases[i] - phases[i-1]; gap < phaseCycle/128 {
			t.Errorf("sessions %d and %d are %v apart, want at least %v", i-1, i, gap, phaseCycle/128)
		}
	}
	for _, c := range []struct{ now, phase, want time.Duration }{
		{0, 0, 0}, {1, 0, phaseCycle}, {5, 7, 7}, {7, 7, 7}, {8, 7, phaseCycle + 7}, {phaseCycle * 9, 1, phaseCycle*9 + 1},
	} {
		if got := following(c.now, c.phase); got != c.want {
			t.Errorf("phase %v after %v: %v, want %v", c.phase, c.now, got, c.want)
		}
	}
}

func TestPacerRunsTasksInTime(t *testing.T) {
	c := newClock()
	p := newPacer(c)
	if p == nil {
		t.Skip("this system has no pacer thread: sessions wait by timers of their own")
	}
	defer p.stop()
	ran := make(chan int, 16)
	order := []time.Duration{30, 10, 20, 0, 5}
	for i, after := range order {
		p.arm(&task{at: c.now() + after*time.Millisecond, run: func() { ran <- i }, index: -1})
	}
	never := &task{at: c.now() + time.Hour, run: func() { ran <- -1 }, index: -1}
	p.arm(never)
	want := []int{3, 4, 1, 2, 0}
	for _, w := range want {
		if got := <-ran; got != w {
			t.Errorf("task %d ran, want %d", got, w)
		}
	}
	if !p.disarm(never) || p.disarm(never) {
		t.Error("a waiting task can be taken back once")
	}
}
