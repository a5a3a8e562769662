package normalize

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"only punctuation", " ?! … — ", ""},
		{"case and punctuation", "Hello, World!", "hello world"},
		{"all kinds of blanks", "\ta\u00a0b\u2003c\u3000d\r\n\x85e\u200bf ", "a b c d e f"},

		{"apostrophe inside", "Don't", "don't"},
		{"curly apostrophes", "don’t don‘t donʼt don＇t", "don't don't don't don't"},
		{"apostrophes at the edge", "'tis the dogs' 'bone'", "tis the dogs bone"},
		{"two apostrophes", "rock ''n'' roll a''b", "rock n roll a b"},
		{"hyphen and underscore", "well-known a_b", "well known a b"},
		{"abbreviation", "U.S.A. e.g. AT&T", "u s a e g at t"},

		{"decimal", "3.5 and 3,5.", "3.5 and 3,5"},
		{"grouping", "1,000,000", "1,000,000"},
		{"clock and fraction", "10:30, 3/4", "10:30 3/4"},
		{"digit stop", "in 1999. 5", "in 1999 5"},
		{"point without digit before", ".5 -.5", "5 5"},
		{"two points", "1..5 1.2.3", "1 5 1.2.3"},
		{"sign, currency, percent", "-5 $5 5% +5 ½ m²", "5 5 5 5 ½ m²"},
		{"range and phone", "15-20 555-1234", "15 20 555 1234"},
		{"arabic digits", "٣٫٥ ١٬٠٠٠", "٣٫٥ ١٬٠٠٠"},
		{"letters around a point", "v2.0 gmail.com a.5", "v2.0 gmail com a 5"},

		{"composition", "Cafe\u0301", "café"},
		{"compatibility forms stay", "ﬁ ５ｍｇ", "ﬁ ５ｍｇ"},
		{"dotted capital I", "İstanbul", "i\u0307stanbul"},
		{"sharp s", "STRASSE GROẞ", "strasse groß"},
		{"final sigma", "ΟΔΟΣ ΟΔΟΣ. Σ σοφοσ ςαν", "οδος οδος σ σοφος σαν"},
		{"final sigma before mark and digit", "ΑΣ\u0301 ΑΣ5 Σ'Α", "ας\u0301 ας5 σ'α"},

		{"devanagari marks", "नमस्ते, दुनिया।", "नमस्ते दुनिया"},
		{"tamil marks", "வணக்கம்!", "வணக்கம்"},
		{"thai", "สวัสดีครับ ผม", "สวัสดีครับ ผม"},
		{"arabic vowels", "مُحَمَّدٌ،", "مُحَمَّدٌ"},
		{"persian non-joiner", "می\u200cخواهم \u200cمی\u200c", "می\u200cخواهم می"},
		{"hebrew points", "שָׁלוֹם", norm.NFC.String("שָׁלוֹם")},
		{"hebrew abbreviations", `צה"ל צה״ל ג'ירפה ג׳ירפה "שלום"`, "צה״ל צה״ל ג'ירפה ג'ירפה שלום"},
		{"armenian question", "ինչո՞ւ", "ինչու"},
		{"catalan", "col·lecció · x", "col·lecció x"},
		{"chinese", "你好，世界。", "你好 世界"},
		{"korean jamo compose", "\u1112\u1161\u11ab", "한"},

		{"emoji", "ok 👍🏽 5️⃣ ❤️", "ok 5"},
		{"stray mark", "\u0301a \u0301 b", "a b"},
		{"soft hyphen and byte order mark", "\ufeffco\u00adoperate a\u00ad\u0301", "cooperate á"},
		{"invalid bytes", "a\xffb \xc3", "a b"},
		{"controls", "a\x00b\x1b[0m", "a b 0m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := plain()
			if got := p.Normalize(tt.in); got != tt.want {
				t.Errorf("Normalize(%q) = %q, want %q", tt.in, got, tt.want)
			}
			checkPlain(t, tt.in)
		})
	}
}

// checkPlain asserts the laws that hold for any input.
func checkPlain(t *testing.T, in string) {
	t.Helper()
	p := plain()
	got := p.Normalize(in)
	if again := p.Normalize(got); again != got {
		t.Errorf("not idempotent: %q -> %q -> %q", in, got, again)
	}
	if !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) {
		t.Errorf("Normalize(%q) = %q is not UTF-8 in NFC", in, got)
	}
	var words []string
	for _, s := range p.Tokens(in) {
		if len(s.Words) != 1 || s.Also != nil {
			t.Errorf("Tokens(%q) has the span %+v, want one word and one reading", in, s)
		}
		words = append(words, s.Words...)
	}
	if joined := strings.Join(words, " "); joined != got {
		t.Errorf("Tokens(%q) join to %q, Normalize gives %q", in, joined, got)
	}
	if strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }) {
		t.Errorf("Normalize(%q) = %q holds white space other than blanks", in, got)
	}
	// Blanks at the edges and around mean nothing.
	if wide := p.Normalize("\t" + in + " ."); wide != got {
		t.Errorf("Normalize(%q) depends on what surrounds it: %q, %q", in, got, wide)
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		"", "It’s 3.5%", "ΟΔΟΣ", "İ", "a\u00ad\u0301", "क\u200d\u094d", "3\u200c.\u200c5", "\xff\xfe",
		`צה"ל`, "J\u030c", "x" + strings.Repeat("\u0301\u0323", 40), "5\ufe0f\u20e3", "σ\u0301'σ",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) { checkPlain(t, in) })
}

// Every assigned character, after a letter, keeps the output idempotent; and lower
// case agrees with an independent implementation of Unicode's mapping.
func TestPlainEveryCharacter(t *testing.T) {
	p, lower := plain(), cases.Lower(language.Und)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf) {
			continue // surrogates, private and unassigned
		}
		in := "x" + string(r)
		got := p.Normalize(in)
		if again := p.Normalize(got); again != got {
			t.Fatalf("not idempotent: %+q -> %+q -> %+q", in, got, again)
		}
		if !isLetterOrNumber(r) || r == 'Σ' || r == sigma || r == finalSigma {
			continue
		}
		if want := norm.NFC.String(lower.String(norm.NFC.String(in))); got != want {
			t.Errorf("Normalize(%+q) = %+q, want %+q", in, got, want)
		}
	}
}

// Sigmas agree with Unicode's rule wherever the input has capitals only.
func TestPlainSigmaOracle(t *testing.T) {
	lower := cases.Lower(language.Und, cases.HandleFinalSigma(true))
	for _, in := range []string{"Σ", "ΑΣ", "ΣΑΣ", "ΣΣΣ", "ΣΊΣΥΦΟΣ", "ΑΣ\u0301", "ΑΣ'Α", "1Σ"} {
		in = norm.NFC.String(in)
		if got, want := plain().Normalize(in), norm.NFC.String(lower.String(in)); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", in, got, want)
		}
	}
}

// The golden file pins what version n of the profile does. It may only be
// rewritten together with a new version.
func TestPlainGolden(t *testing.T) {
	const path = "testdata/plain.jsonl"
	type header struct {
		Profile string `json:"profile"`
		Version int    `json:"version"`
	}
	type row struct {
		In  string `json:"in"`
		Out string `json:"out"`
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	var head header
	if !sc.Scan() || json.Unmarshal(sc.Bytes(), &head) != nil {
		t.Fatalf("%s: no header", path)
	}
	p := plain()
	var want, got []row
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		want = append(want, r)
		got = append(got, row{r.In, p.Normalize(r.In)})
	}
	if len(want) < 100 {
		t.Fatalf("%s: only %d rows", path, len(want))
	}
	diff := cmp.Diff(want, got)
	if !*update {
		if head.Version != p.Version || diff != "" {
			t.Errorf("%s pins version %d, the code is version %d (-pinned +code):\n%s", path, head.Version, p.Version, diff)
		}
		return
	}
	if diff != "" && head.Version == p.Version {
		t.Fatalf("the output changed but the version did not: raise plainVersion first\n%s", diff)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.Encode(header{p.Name, p.Version})
	for _, r := range got {
		enc.Encode(r)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Long input of any shape takes time in proportion to its length. A quadratic
// step would take minutes here and run into the test's time limit.
func TestPlainLong(t *testing.T) {
	for _, unit := range []string{"a", "σ", "1", "\u0301", "'", "a'", "1.", "a\u0301'", "\u200d", "\xff", "a ", "1\u0301.", "א\""} {
		in := strings.Repeat("1", 100_000) + strings.Repeat(unit, 100_000)
		if got := plain().Normalize(in); !strings.HasPrefix(got, "1111") {
			t.Errorf("%q repeated: %.20q", unit, got)
		}
	}
}

func BenchmarkPlain(b *testing.B) {
	in := strings.Repeat("It’s a well-known fact that 3.5 people, of ten, agree. ", 20)
	b.SetBytes(int64(len(in)))
	p := plain()
	for b.Loop() {
		p.Tokens(in)
	}
}
