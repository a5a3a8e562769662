package streamer

import (
	"container/heap"
	"slices"
	"time"
)

// task is a piece of sending that is due at an instant. A session has one and
// arms it again for each chunk.
type task struct {
	at    time.Duration // stamp of the clock
	run   func()        // must not block: all sessions wait for it
	index int           // in the heap; -1 when not armed
}

// schedule is a heap of tasks, the earliest first. It is pure: the pacer that owns
// it reads the clock.
type schedule struct{ tasks []*task }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *schedule) Len() int           { return len(s.tasks) }
func (s *schedule) Less(i, j int) bool { return s.tasks[i].at < s.tasks[j].at }
func (s *schedule) Swap(i, j int) {
	s.tasks[i], s.tasks[j] = s.tasks[j], s.tasks[i]
	s.tasks[i].index, s.tasks[j].index = i, j
}
func (s *schedule) Push(x any) {
	t := x.(*task)
	t.index = len(s.tasks)
	s.tasks = append(s.tasks, t)
}
func (s *schedule) Pop() any {
	t := s.tasks[len(s.tasks)-1]
	s.tasks = s.tasks[:len(s.tasks)-1]
	t.index = -1
	return t
}

func (s *schedule) arm(t *task) { heap.Push(s, t) }

// disarm takes a task out; false when it was not in.
func (s *schedule) disarm(t *task) bool {
	if t.index < 0 {
		return false
	}
	heap.Remove(s, t.index)
	return true
}

// first is the earliest task, nil when there is none.
func (s *schedule) first() *task {
	if len(s.tasks) == 0 {
		return nil
	}
	return s.tasks[0]
}

// pop takes the earliest task if it is due.
func (s *schedule) pop(now time.Duration) *task {
	if t := s.first(); t != nil && t.at <= now {
		heap.Pop(s)
		return t
	}
	return nil
}

// phaseCycle is the rhythm in which sessions send; other chunk lengths are
// commonly multiples of it.
const phaseCycle = defaultChunk

// emptiest finds the middle of the largest gap between the phases of the running
// sessions, each in [0, phaseCycle). Sessions that all send at the same instant
// cost each other milliseconds.
func emptiest(phases []time.Duration) time.Duration {
	if len(phases) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(phases))
	best, at := time.Duration(-1), time.Duration(0)
	for i, p := range sorted {
		next := sorted[0] + phaseCycle
		if i+1 < len(sorted) {
			next = sorted[i+1]
		}
		if gap := next - p; gap > best {
			best, at = gap, (p+gap/2)%phaseCycle
		}
	}
	return at
}

// following is the first instant at or after now that has the phase.
func following(now, phase time.Duration) time.Duration {
	at := now - now%phaseCycle + phase
	if at < now {
		at += phaseCycle
	}
	return at
}
