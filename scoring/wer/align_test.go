package wer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sttbench/scoring/normalize"
)

// spans parses a test text. A span is a word, or [fixed reading|other|...].
func spans(text string) []normalize.Span {
	var out []normalize.Span
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var item string
		if strings.HasPrefix(text, "[") {
			item, text, _ = strings.Cut(text[1:], "]")
		} else {
			item, text, _ = strings.Cut(text, " ")
		}
		var s normalize.Span
		for k, reading := range strings.Split(item, "|") {
			if words := strings.Fields(reading); k == 0 {
				s.Words = words
			} else {
				s.Also = append(s.Also, words)
			}
		}
		out = append(out, s)
	}
	return out
}

// compact writes an alignment on one line.
func compact(a Alignment) string {
	var parts []string
	for _, op := range a.Ops {
		switch {
		case op.Kind == Hit && op.Ref == op.Hyp:
			parts = append(parts, strings.ReplaceAll(op.Ref, " ", "_"))
		case op.Kind == Hit:
			parts = append(parts, strings.ReplaceAll(op.Ref+"="+op.Hyp, " ", "_"))
		default:
			parts = append(parts, fmt.Sprintf("%s(%s>%s)", op.Kind, op.Ref, op.Hyp))
		}
	}
	return strings.Join(parts, " ")
}

func TestAlign(t *testing.T) {
	for _, tt := range []struct {
		name, ref, hyp string
		want           string
		n, h, s, d, i  int
	}{
		{"both empty", "", "", "", 0, 0, 0, 0, 0},
		{"equal", "a b", "a b", "a b", 2, 2, 0, 0, 0},
		{"empty reference", "", "a b", "I(>a) I(>b)", 0, 0, 0, 0, 2},
		{"empty transcript", "a b", "", "D(a>) D(b>)", 2, 0, 0, 2, 0},
		{"one of each", "the cat sat on mats", "the dog sat on on", "the S(cat>dog) sat on S(mats>on)", 5, 3, 2, 0, 0},
		{"substitution before gaps", "a b", "b c", "S(a>b) S(b>c)", 2, 0, 2, 0, 0},
		{"late word matches the last of equals", "go go", "go", "D(go>) go", 2, 1, 0, 1, 0},
		{"tail cut off", "one two three four", "one two", "one two D(three>) D(four>)", 4, 2, 0, 2, 0},
		{"more words than the reference", "a", "x y z", "I(>x) I(>y) S(a>z)", 1, 0, 1, 0, 2},

		{"readings meet", "it cost [99.99|ninety-nine ninety-nine] then", "it cost [9999|ninety-nine ninety-nine] then",
			"it cost 99.99=9999 then", 4, 4, 0, 0, 0},
		{"not transitive", "[99.99]", "[9999]", "S(99.99>9999)", 1, 0, 1, 0, 0},
		{"one span, several words", "[it is|it's] fine", "it is fine", "it is fine", 3, 3, 0, 0, 0},
		{"other reading on the transcript's side", "it is fine", "[it's|it is|it has] fine", "it_is=it's fine", 3, 3, 0, 0, 0},
		{"words count by the reference's fixed reading", "[1999|nineteen ninety nine] x", "nineteen ninety nine y",
			"1999=nineteen_ninety_nine S(x>y)", 2, 1, 1, 0, 0},
		{"run of spans that have readings themselves", "[new york city|nyc]", "[ny|new york] city", "new_york_city=ny_city", 3, 3, 0, 0, 0},
		{"reading only joins whole spans", "[a b|ab]", "x [b y|b]", "S(a>x) b I(>y)", 2, 1, 1, 0, 1},
		{"part of a fixed reading still matches", "[it is|it's] fine", "it fine", "it D(is>) fine", 3, 2, 0, 1, 0},
		{"no meeting, so the fixed readings are compared", "[10 30|1030]", "[10:30|half past ten]", "D(10>) S(30>10:30)", 2, 0, 1, 1, 0},
		{"the shortest jump wins", "q [p|y|x y]", "x y", "S(q>x) p=y", 2, 1, 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := Align(spans(tt.ref), spans(tt.hyp))
			if err != nil {
				t.Fatal(err)
			}
			if got := compact(a); got != tt.want {
				t.Errorf("alignment %q, want %q", got, tt.want)
			}
			want := Counts{RefWords: tt.n, Hits: tt.h, Sub: tt.s, Del: tt.d, Ins: tt.i}
			if d := cmp.Diff(want, a.Counts); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
		})
	}
}

// oracle is the textbook table: edits between word lists.
func oracle(ref, hyp []string) int {
	d := make([][]int, len(ref)+1)
	for i := range d {
		d[i] = make([]int, len(hyp)+1)
		for j := range d[i] {
			switch {
			case i == 0:
				d[i][j] = j
			case j == 0:
				d[i][j] = i
			case ref[i-1] == hyp[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
		}
	}
	return d[len(ref)][len(hyp)]
}

// ends lists words of both fixed readings, from the operations.
func ends(a Alignment) (ref, hyp []string) {
	for _, op := range a.Ops {
		ref = append(ref, strings.Fields(op.Ref)...)
		hyp = append(hyp, strings.Fields(op.Hyp)...)
	}
	return ref, hyp
}

func fixed(s []normalize.Span) (words []string) {
	for _, span := range s {
		words = append(words, span.Words...)
	}
	return words
}

func mustAlign(t testing.TB, ref, hyp []normalize.Span) Alignment {
	t.Helper()
	a, err := Align(ref, hyp)
	if err != nil {
		t.Fatal(err)
	}
	checkLaws(t, a, ref, hyp)
	return a
}

// checkLaws asserts what holds for any alignment.
func checkLaws(t testing.TB, a Alignment, ref, hyp []normalize.Span) {
	t.Helper()
	gotRef, gotHyp := ends(a)
	if !slices.Equal(gotRef, fixed(ref)) || !slices.Equal(gotHyp, fixed(hyp)) {
		t.Fatalf("the operations do not rebuild the texts: %s", compact(a))
	}
	if a.Hits+a.Sub+a.Del != a.RefWords || a.RefWords != len(gotRef) {
		t.Fatalf("hits %d + sub %d + del %d, reference words %d of %d", a.Hits, a.Sub, a.Del, a.RefWords, len(gotRef))
	}
}

// random draws a text of up to n words from few, so that ties abound.
func random(rng *rand.Rand, n int) []normalize.Span {
	out := make([]normalize.Span, rng.IntN(n+1))
	letters := 1 + rng.IntN(5)
	for i := range out {
		out[i].Words = []string{string(rune('a' + rng.IntN(letters)))}
	}
	return out
}

// corrupt returns text with some words replaced, lost and added.
func corrupt(rng *rand.Rand, text []normalize.Span, rate float64) []normalize.Span {
	var out []normalize.Span
	for _, s := range text {
		if rng.Float64() >= rate {
			out = append(out, s)
			continue
		}
		for range rng.IntN(3) {
			out = append(out, text[rng.IntN(len(text))])
		}
	}
	return out
}

func TestAlignLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range 1000 {
		n := 12
		if k%10 == 0 {
			n = 200 // several 64-bit blocks
		}
		x, y, z := random(rng, n), random(rng, n), random(rng, n)
		xy, yx := mustAlign(t, x, y), mustAlign(t, y, x)
		if want := oracle(fixed(x), fixed(y)); xy.Errors() != want {
			t.Fatalf("%s: %d errors, want %d", compact(xy), xy.Errors(), want)
		}
		mirrored := slices.Clone(yx.Ops)
		for i, op := range mirrored {
			kind := map[Kind]Kind{Hit: Hit, Sub: Sub, Del: Ins, Ins: Del}[op.Kind]
			mirrored[i] = Op{kind, op.Hyp, op.Ref}
		}
		if d := cmp.Diff(xy.Ops, mirrored); d != "" {
			t.Fatalf("swapping the sides does not mirror the alignment:\n%s", d)
		}
		if xx := mustAlign(t, x, x); xx.Errors() != 0 || xx.Hits != len(x) {
			t.Fatalf("%s: a text differs from itself", compact(xx))
		}
		if xz, zy := mustAlign(t, x, z), mustAlign(t, z, y); xy.Errors() > xz.Errors()+zy.Errors() {
			t.Fatalf("triangle inequality: %d > %d + %d", xy.Errors(), xz.Errors(), zy.Errors())
		}
	}
}

// Both algorithms give the same operations where both apply.
func TestAlignWordsEqualsAlignSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		x, y := random(rng, 150), random(rng, 150)
		fast := mustAlign(t, x, y)
		if slow := slowAlign(t, x, y); cmp.Diff(fast, slow) != "" {
			t.Fatalf("by words %s\nby spans %s", compact(fast), compact(slow))
		}
	}
}

// slowAlign is Align without the bit-parallel form.
func slowAlign(t *testing.T, ref, hyp []normalize.Span) Alignment {
	r, err := newSide("reference", ref)
	if err != nil {
		t.Fatal(err)
	}
	h, err := newSide("transcript", hyp)
	if err != nil {
		t.Fatal(err)
	}
	in := interner{}
	r.ids, h.ids = in.numbers(r.words), in.numbers(h.words)
	return newAlignment(alignSpans(r, h, in))
}

// A table that is not kept whole gives what a kept one gives.
func TestAlignInStretches(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x := make([]normalize.Span, 1200)
	for i := range x {
		x[i].Words = []string{fmt.Sprint(rng.IntN(300))}
	}
	for _, y := range [][]normalize.Span{corrupt(rng, x, 0.3), corrupt(rng, x, 1), x[:1025], x[300:]} {
		if blocks := (len(x) + 63) / 64; blocks*len(y)*4 <= keepAll {
			t.Fatalf("%d words fit into one stretch", len(y))
		}
		fast := mustAlign(t, x, y)
		if slow := slowAlign(t, x, y); cmp.Diff(fast.Ops, slow.Ops) != "" {
			t.Fatal("stretches change the alignment")
		}
	}
}

// spanOracle is the least number of edits by definition: recursion over the
// starts of both texts, trying every jump by joining readings as text.
func spanOracle(ref, hyp []normalize.Span) int {
	starts := func(s []normalize.Span) map[int]int {
		m, n := map[int]int{}, 0
		for k, span := range s {
			m[n] = k
			n += len(span.Words)
		}
		return m
	}
	all := func(s normalize.Span) []string {
		out := []string{strings.Join(s.Words, " ")}
		for _, r := range s.Also {
			out = append(out, strings.Join(r, " "))
		}
		return out
	}
	// joins gives every text of the spans.
	var joins func(s []normalize.Span) []string
	joins = func(s []normalize.Span) []string {
		if len(s) == 1 {
			return all(s[0])
		}
		var out []string
		for _, rest := range joins(s[1:]) {
			for _, first := range all(s[0]) {
				out = append(out, first+" "+rest)
			}
		}
		return out
	}
	meet := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
	}
	rw, hw, rs, hs := fixed(ref), fixed(hyp), starts(ref), starts(hyp)
	memo := map[[2]int]int{}
	var from func(i, j int) int
	from = func(i, j int) int {
		if i == len(rw) || j == len(hw) {
			return len(rw) - i + len(hw) - j
		}
		if v, ok := memo[[2]int{i, j}]; ok {
			return v
		}
		best := 1 + min(from(i+1, j), from(i, j+1), from(i+1, j+1))
		if rw[i] == hw[j] {
			best = min(best, from(i+1, j+1))
		}
		a, okA := rs[i]
		b, okB := hs[j]
		if okA && okB {
			for n := 1; a+n <= len(ref); n++ {
				for m := 1; b+m <= len(hyp); m++ {
					if (n == 1 || m == 1) && meet(joins(ref[a:a+n]), joins(hyp[b:b+m])) {
						best = min(best, from(i+len(fixed(ref[a:a+n])), j+len(fixed(hyp[b:b+m]))))
					}
				}
			}
		}
		memo[[2]int{i, j}] = best
		return best
	}
	return from(0, 0)
}

func TestAlignSpanLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	reading := func() []string {
		out := make([]string, 1+rng.IntN(3))
		for i := range out {
			out[i] = string(rune('a' + rng.IntN(3)))
		}
		return out
	}
	text := func() []normalize.Span {
		out := make([]normalize.Span, rng.IntN(5))
		for i := range out {
			out[i].Words = reading()
			for range rng.IntN(3) {
				out[i].Also = append(out[i].Also, reading())
			}
		}
		return out
	}
	for range 2000 {
		x, y := text(), text()
		xy, yx := mustAlign(t, x, y), mustAlign(t, y, x)
		if xy.Errors() != yx.Errors() {
			t.Fatalf("%v, %v: %d errors one way, %d the other", x, y, xy.Errors(), yx.Errors())
		}
		if want := spanOracle(x, y); xy.Errors() != want {
			t.Fatalf("%v, %v: %s has %d errors, want %d", x, y, compact(xy), xy.Errors(), want)
		}
		if most := oracle(fixed(x), fixed(y)); xy.Errors() > most {
			t.Fatalf("readings added errors: %d > %d", xy.Errors(), most)
		}
		if xx := mustAlign(t, x, x); xx.Errors() != 0 {
			t.Fatalf("%v differs from itself", x)
		}
	}
}

func TestAlignRefuses(t *testing.T) {
	many := func(n int) []normalize.Span {
		out := make([]normalize.Span, n)
		for i := range out {
			out[i].Words = []string{"a"}
		}
		return out
	}
	readings := many(12_000)
	readings[7].Also = [][]string{{"b"}}
	for _, tt := range []struct {
		name     string
		ref, hyp []normalize.Span
		tooLong  bool
		want     string
	}{
		{"too many words", many(MaxWords + 1), many(1), true, "50001 reference words and 1 words, at most 50000 each"},
		{"too many cells", readings, many(12_000), true, "12000 reference words × 12000 words with several readings"},
		{"no words", []normalize.Span{{}}, nil, false, "reference span 0: a reading has 0 words, want 1 to 63"},
		{"empty word", nil, []normalize.Span{{Words: []string{"a"}}, {Words: []string{""}}}, false, "transcript span 1: the reading"},
		{"blank in a further reading", spans("a"), []normalize.Span{{Words: []string{"a"}, Also: [][]string{{"b c"}}}}, false, "has a blank"},
		{"long reading", []normalize.Span{{Words: make([]string, MaxReading+1)}}, nil, false, "has 64 words"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Align(tt.ref, tt.hyp)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q in it", err, tt.want)
			}
			var long *TooLongError
			if errors.As(err, &long) != tt.tooLong {
				t.Errorf("%v: a *TooLongError is %v, want %v", err, !tt.tooLong, tt.tooLong)
			}
		})
	}
}

// A reading that fits a chain of spans in very many ways costs no more time.
func TestAlignAmbiguousReadings(t *testing.T) {
	long := normalize.Span{Words: slices.Repeat([]string{"a"}, MaxReading)}
	chain := slices.Repeat([]normalize.Span{{Words: []string{"a"}, Also: [][]string{{"a", "a"}, {"a", "a", "a"}}}}, 50)
	if a := mustAlign(t, []normalize.Span{long}, chain); a.Errors() != 0 {
		t.Errorf("%d errors, want 0", a.Errors())
	}
}

func TestAlignmentJSON(t *testing.T) {
	for _, tt := range []struct{ ref, hyp, want string }{
		{"", "", `{"ref_words":0,"hits":0,"sub":0,"del":0,"ins":0,"alignment":[]}`},
		{"a b c", "a x d c", `{"ref_words":3,"hits":2,"sub":1,"del":0,"ins":1,"alignment":[` +
			`{"op":"=","ref":"a","hyp":"a"},{"op":"I","hyp":"x"},{"op":"S","ref":"b","hyp":"d"},{"op":"=","ref":"c","hyp":"c"}]}`},
	} {
		got, err := json.Marshal(mustAlign(t, spans(tt.ref), spans(tt.hyp)))
		if err != nil || string(got) != tt.want {
			t.Errorf("%q, %q: %s, %v, want %s", tt.ref, tt.hyp, got, err, tt.want)
		}
	}
}

func FuzzAlign(f *testing.F) {
	f.Add("a b c", "a c d")
	f.Add("", "x")
	f.Add("[99.99|9999] b", "9999 [b|b c]")
	f.Fuzz(func(t *testing.T, ref, hyp string) {
		if len(ref)+len(hyp) > 400 {
			return
		}
		x, y := spans(ref), spans(hyp)
		a, err := Align(x, y)
		if err != nil {
			return
		}
		checkLaws(t, a, x, y)
		if most := oracle(fixed(x), fixed(y)); a.Errors() > most {
			t.Errorf("%d errors, at most %d possible", a.Errors(), most)
		}
	})
}

func BenchmarkAlign(b *testing.B) {
	for _, n := range []int{20, 1000, 10_000, MaxWords} {
		rng := rand.New(rand.NewPCG(9, 10))
		ref := make([]normalize.Span, n)
		for i := range ref {
			ref[i].Words = []string{fmt.Sprint(int(rng.ExpFloat64() * 300))}
		}
		hyp := corrupt(rng, ref, 0.1)
		hyp = hyp[:min(n, len(hyp))]
		b.Run(fmt.Sprintf("words=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Align(ref, hyp); err != nil {
					b.Fatal(err)
				}
			}
		})
		if n > 10_000 {
			continue
		}
		ref[0].Also = [][]string{{"x", "y"}}
		b.Run(fmt.Sprintf("words=%d,readings", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Align(ref, hyp); err != nil {
					b.Fatal(err)
				}
			}
		})
		ref[0].Also = nil
	}
}
