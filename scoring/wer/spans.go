package wer

import (
	"math/bits"
	"slices"
)

// alignSpans aligns texts in which spans have several readings or words.
//
// It fills the usual table over the words of the fixed readings, with one more
// way into a cell: from the start of a span to its end at no cost, where the
// readings meet. Such a jump can lower the distance by more than 1 from one cell
// to the next, so the bit-parallel form of alignWords does not apply.
func alignSpans(ref, hyp *side, in interner) []Op {
	r, h := newLattice(ref, in), newLattice(hyp, in)
	rows, cols := len(ref.ids)+1, len(hyp.ids)+1
	d := make([]uint16, rows*cols) // MaxWords fits
	for i := range rows {
		d[i*cols] = uint16(i)
	}
	for j := range cols {
		d[j] = uint16(j)
	}
	for i := 1; i < rows; i++ {
		prev, row := d[(i-1)*cols:i*cols], d[i*cols:(i+1)*cols]
		for j := 1; j < cols; j++ {
			best := min(prev[j-1], prev[j], row[j-1]) + 1
			if ref.ids[i-1] == hyp.ids[j-1] {
				best = min(best, prev[j-1])
			}
			if !(r.word[i] && h.word[j]) { // two words have been compared already
				jumps(r, h, i, j, func(i0, j0 int) {
					best = min(best, d[i0*cols+j0])
				})
			}
			row[j] = best
		}
	}

	t := newTracer(ref, hyp)
	for t.i > 0 && t.j > 0 {
		at := t.i*cols + t.j
		here, diagonal := d[at], d[at-cols-1]
		if diagonal == here && ref.ids[t.i-1] == hyp.ids[t.j-1] {
			t.hit(1, 1)
			continue
		}
		if n, m, ok := bestJump(r, h, d, t.i, t.j); ok {
			t.hit(n, m)
			continue
		}
		if diagonal+1 == here {
			t.sub()
			continue
		}
		t.gap(d[at-cols]+1 == here, d[at-1]+1 == here)
	}
	return t.finish()
}

// bestJump returns the words of both sides that the jump into (i, j) covers, if
// a jump keeps the distance: the fewest in all, then the fewest of the reference.
func bestJump(r, h *lattice, d []uint16, i, j int) (n, m int, ok bool) {
	cols := len(h.end)
	jumps(r, h, i, j, func(i0, j0 int) {
		if d[i0*cols+j0] != d[i*cols+j] {
			return
		}
		n1, m1 := i-i0, j-j0
		if !ok || n1+m1 < n+m || n1+m1 == n+m && n1 < n {
			n, m, ok = n1, m1, true
		}
	})
	return n, m, ok
}

// A lattice is a side as a chain of spans.
type lattice struct {
	readings [][][]int32 // by span: its readings, the fixed one first
	start    []int       // by span: the number of words before it
	end      []int       // by number of words: the span that ends there, or -1
	word     []bool      // by number of words: whether that span is one word, read one way
}

func newLattice(s *side, in interner) *lattice {
	l := &lattice{end: make([]int, len(s.ids)+1), word: make([]bool, len(s.ids)+1)}
	for i := range l.end {
		l.end[i] = -1
	}
	n := 0
	for k, span := range s.spans {
		readings := [][]int32{s.ids[n : n+len(span.Words)]}
		for _, also := range span.Also {
			readings = append(readings, in.numbers(also))
		}
		l.readings = append(l.readings, readings)
		l.start = append(l.start, n)
		n += len(span.Words)
		l.end[n] = k
		l.word[n] = len(readings) == 1 && len(readings[0]) == 1
	}
	return l
}

// jumps calls yield with the start (i0, j0) of every free jump that ends at
// (i, j): one span on one side, one or more on the other.
func jumps(r, h *lattice, i, j int, yield func(i0, j0 int)) {
	a, b := r.end[i], h.end[j]
	if a < 0 || b < 0 {
		return
	}
	for _, reading := range r.readings[a] {
		runs(reading, h.readings[:b+1], func(k int) { yield(r.start[a], h.start[k]) })
	}
	for _, reading := range h.readings[b] {
		runs(reading, r.readings[:a+1], func(k int) { yield(r.start[k], h.start[b]) })
	}
}

// runs calls yield with every k for which spans k to the last of chain have
// readings that, joined, give reading.
func runs(reading []int32, chain [][][]int32, yield func(k int)) {
	// Bit n is set while the first n words of reading are still to be found.
	open := uint64(1) << len(reading)
	for k := len(chain) - 1; k >= 0 && open != 0; k-- {
		var next uint64
		for ; open != 0; open &= open - 1 {
			left := reading[:bits.TrailingZeros64(open)]
			for _, part := range chain[k] {
				if n := len(left) - len(part); n >= 0 && slices.Equal(left[n:], part) {
					next |= 1 << n
				}
			}
		}
		if next&1 != 0 {
			yield(k)
		}
		open = next &^ 1
	}
}
