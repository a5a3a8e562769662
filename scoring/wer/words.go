package wer

import (
	"math"
	"slices"
)

// alignWords aligns texts whose spans are single words.
//
// It computes the edit distance table 64 reference words at a time, in the form
// of Hyyrö (2003, "A bit-vector algorithm for computing Levenshtein and Damerau
// edit distances") after Myers (1999, J. ACM 46:3). Neighbouring cells differ by
// -1, 0 or 1, so two bits hold a difference and the values are never needed.
// The table is not kept: a first pass keeps every stride-th column, and the walk
// back recomputes the stretch between two kept columns when it gets there.
func alignWords(ref, hyp *side) []Op {
	t := newTracer(ref, hyp)
	if t.i > 0 && t.j > 0 {
		newTable(ref.ids, hyp.ids).walk(t)
	}
	return t.finish()
}

// keepAll is the table size, in 64-bit words, up to which one stretch holds the
// whole table and no first pass is needed (128 kB).
const keepAll = 1 << 14

type table struct {
	hyp    []int32
	blocks int      // 64-bit words per column
	match  []match  // where the reference has each word, as linked lists
	last   []int32  // by word number: the head of its list, or none
	eq     []uint64 // scratch: one word's matches as a bit vector
	stride int      // columns per stretch
	kept   []column // the column before each stretch
	part   []column // the current stretch; part[0] is the column before it
}

// match holds the occurrences of a word among 64 reference words.
type match struct {
	bits  uint64
	block int32
	next  int32 // in match, or none
}

const none = -1

// A column holds differences between cells, one bit per reference word.
type column struct {
	vp, vn []uint64 // D(i,j) - D(i-1,j) is 1 (vp), -1 (vn) or 0
	hp, hn []uint64 // D(i,j) - D(i,j-1), likewise; nil in kept columns
}

func newTable(ref, hyp []int32) *table {
	tb := &table{hyp: hyp, blocks: (len(ref) + 63) / 64}
	tb.eq = make([]uint64, tb.blocks)

	tb.last = slices.Repeat([]int32{none}, int(slices.Max(ref))+1)
	tb.match = make([]match, 0, len(ref))
	for i, id := range ref {
		block, bit := int32(i/64), uint64(1)<<(i%64)
		if at := tb.last[id]; at != none && tb.match[at].block == block {
			tb.match[at].bits |= bit
			continue
		}
		tb.match = append(tb.match, match{bits: bit, block: block, next: tb.last[id]})
		tb.last[id] = int32(len(tb.match) - 1)
	}

	tb.stride = len(hyp)
	if tb.blocks*len(hyp)*4 > keepAll {
		tb.stride = int(math.Sqrt(float64(len(hyp)))) + 1
	}
	tb.part = make([]column, tb.stride+1)
	store := make([]uint64, 4*tb.blocks*len(tb.part))
	for i := range tb.part {
		c := &tb.part[i]
		for _, v := range []*[]uint64{&c.vp, &c.vn, &c.hp, &c.hn} {
			*v, store = store[:tb.blocks:tb.blocks], store[tb.blocks:]
		}
	}
	tb.firstPass()
	return tb
}

// firstPass fills kept.
func (tb *table) firstPass() {
	first := column{vp: make([]uint64, tb.blocks), vn: make([]uint64, tb.blocks)}
	for b := range first.vp {
		first.vp[b] = ^uint64(0) // D(i,0) = i
	}
	tb.kept = []column{first}
	for j := tb.stride; j < len(tb.hyp); j += tb.stride {
		last := tb.fill(len(tb.kept)-1, j)
		c := column{vp: make([]uint64, tb.blocks), vn: make([]uint64, tb.blocks)}
		copy(c.vp, last.vp)
		copy(c.vn, last.vn)
		tb.kept = append(tb.kept, c)
	}
}

// fill computes stretch s up to column j and returns that column.
func (tb *table) fill(s, j int) *column {
	copy(tb.part[0].vp, tb.kept[s].vp)
	copy(tb.part[0].vn, tb.kept[s].vn)
	start := s * tb.stride
	for k := 1; k <= j-start; k++ {
		tb.next(&tb.part[k-1], &tb.part[k], tb.hyp[start+k-1])
	}
	return &tb.part[j-start]
}

// next computes the column for a word of the transcript from the one before it.
func (tb *table) next(from, to *column, word int32) {
	first := int32(none)
	if int(word) < len(tb.last) {
		first = tb.last[word]
	}
	for at := first; at != none; at = tb.match[at].next {
		tb.eq[tb.match[at].block] = tb.match[at].bits
	}
	// D(0,j) - D(0,j-1) = 1 enters the first block from above.
	carryP, carryN := uint64(1), uint64(0)
	n := len(tb.eq)
	fromP, fromN := from.vp[:n], from.vn[:n] // equal lengths: no bounds checks
	toP, toN, toHP, toHN := to.vp[:n], to.vn[:n], to.hp[:n], to.hn[:n]
	for b, eq := range tb.eq {
		vp, vn := fromP[b], fromN[b]
		xv := eq | vn
		eq |= carryN
		xh := (((eq & vp) + vp) ^ vp) | eq
		hp := vn | ^(xh | vp)
		hn := vp & xh
		toHP[b], toHN[b] = hp, hn

		hp, carryP = hp<<1|carryP, hp>>63
		hn, carryN = hn<<1|carryN, hn>>63
		toP[b] = hn | ^(xv | hp)
		toN[b] = hp & xv
	}
	for at := first; at != none; at = tb.match[at].next {
		tb.eq[tb.match[at].block] = 0
	}
}

// walk goes back from the last cell to an edge of the table.
func (tb *table) walk(t *tracer) {
	for s := len(tb.kept) - 1; s >= 0 && t.i > 0; s-- {
		start := s * tb.stride
		tb.fill(s, t.j)
		for t.i > 0 && t.j > start {
			if t.ref.ids[t.i-1] == t.hyp.ids[t.j-1] {
				t.hit(1, 1) // never longer than another way
				continue
			}
			here, left := &tb.part[t.j-start], &tb.part[t.j-start-1]
			h := diff(here.hp, here.hn, t.i-1)
			// D(i,j) - D(i-1,j-1) = h + D(i,j-1) - D(i-1,j-1)
			if h+diff(left.vp, left.vn, t.i-1) == 1 {
				t.sub()
				continue
			}
			t.gap(diff(here.vp, here.vn, t.i-1) == 1, h == 1)
		}
	}
}

func diff(p, n []uint64, i int) int {
	return int(p[i/64]>>(i%64)&1) - int(n[i/64]>>(i%64)&1)
}
