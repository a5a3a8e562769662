package emulator

import "container/heap"

// task is something to do at an instant of the machine's monotonic clock.
type task struct {
	due     int64
	precise bool // worth waiting awake for
	run     func()
	seq     int // keeps tasks of one instant in order
	index   int // in the heap; -1 when not in it
}

// tasks is a queue ordered by instant.
type tasks struct {
	heap taskHeap
	seq  int
}

func (q *tasks) add(t *task) {
	q.seq++
	t.seq = q.seq
	heap.Push(&q.heap, t)
}

func (q *tasks) first() *task {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

func (q *tasks) remove(t *task) {
	if t.index >= 0 && t.index < len(q.heap) && q.heap[t.index] == t {
		heap.Remove(&q.heap, t.index)
	}
}

// taskHeap implements heap.Interface.
type taskHeap []*task

func (h taskHeap) Len() int { return len(h) }
func (h taskHeap) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].seq < h[j].seq
}
func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *taskHeap) Push(x any) {
	t := x.(*task)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *taskHeap) Pop() any {
	old := *h
	n := len(old) - 1
	t := old[n]
	old[n] = nil
	*h = old[:n]
	t.index = -1
	return t
}
