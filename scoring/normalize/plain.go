package normalize

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// plainVersion goes up with every edit of plainRules or of the code below that
// changes any output. TestPlainGolden enforces it.
const plainVersion = 1

// plainRules is the specification of the profile. It is part of the hash.
const plainRules = `
1. Bytes that are not UTF-8 become U+FFFD. The text is put into Unicode form
   NFC. Compatibility forms stay as written: full-width letters, ligatures,
   superscripts, ½.
2. Deleted, leaving no gap: format characters (Cf: soft hyphen, byte order mark,
   direction marks) except the two joiners and U+200B; variation selectors;
   enclosing marks (Me); the Armenian intonation marks U+055B, U+055C, U+055E,
   which are written inside words.
3. Kept: letters (L), numbers (N), and marks (Mn, Mc) that follow a kept
   character. A mark on anything else goes with it.
4. Kept in one place only:
   - an apostrophe between two letters or numbers, written as '
     (from ' U+2018 U+2019 U+201B U+02BB U+02BC U+05F3 U+FF07);
   - gershayim between two Hebrew letters, written as U+05F4 (from U+05F4 ");
   - the middle dot U+00B7 between two letters (Catalan);
   - . , : / U+066B U+066C between two decimal digits (3.5  1,000  10:30  3/4);
   - the joiners U+200C and U+200D inside a word.
   A mark may stand between the character and its left neighbour.
5. Everything else separates words: white space, punctuation, symbols,
   controls, U+200B, private and unassigned characters. So signs before numbers,
   currency signs, percent signs, hyphens and underscores are gone.
6. Lower case, by Unicode's language-neutral mapping. Any sigma is written
   U+03C2 when it is the last letter of a word that has a letter before it,
   and U+03C3 otherwise.
7. NFC again; words are joined by one blank.
Digits are not converted, words are not split further (Thai, Chinese and
Japanese runs stay whole), nothing is spelled out.
`

// plain is the profile that changes as little as possible in any language.
func plain() Profile {
	return Profile{
		Name:    "plain",
		Version: plainVersion,
		content: []string{plainRules},
		text:    plainText,
	}
}

func plainText(s string) string {
	s = norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD"))
	text := []rune(strings.Map(dropIgnorable, s))

	var out strings.Builder
	out.Grow(len(s))
	var word []rune
	flush := func() {
		if len(word) == 0 {
			return
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		setSigmas(word)
		for _, r := range word {
			out.WriteRune(r)
		}
		word = word[:0]
	}
	for i, r := range text {
		var next rune
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case isLetterOrNumber(r):
			word = appendLower(word, r)
		case unicode.IsMark(r):
			if len(word) > 0 {
				word = append(word, r)
			}
		case r == zwnj || r == zwj:
			if len(word) > 0 && (isLetterOrNumber(next) || unicode.IsMark(next)) {
				word = append(word, r)
			}
		default:
			c, ok := connector(base(word), r, next)
			if !ok {
				flush()
				continue
			}
			word = append(word, c)
		}
	}
	flush()
	return norm.NFC.String(out.String())
}

const (
	zwsp       = '\u200B' // marks word boundaries, e.g. in Khmer
	zwnj       = '\u200C'
	zwj        = '\u200D'
	gershayim  = '\u05F4'
	middleDot  = '\u00B7'
	sigma      = 'σ'
	finalSigma = 'ς'
)

// dropIgnorable deletes what has no width of its own, for strings.Map.
func dropIgnorable(r rune) rune {
	switch {
	case r < 0x80 || r == zwsp || r == zwnj || r == zwj:
		return r
	case r == '\u055B' || r == '\u055C' || r == '\u055E':
		return -1
	case unicode.In(r, unicode.Cf, unicode.Me, unicode.Variation_Selector):
		return -1
	}
	return r
}

// connector says whether r joins its neighbours into one word, and how it is
// then written. prev is 0 at the start of a word.
func connector(prev, r, next rune) (rune, bool) {
	switch r {
	case '\'', '\u2018', '\u2019', '\u201B', '\u02BB', '\u02BC', '\u05F3', '\uFF07':
		return '\'', isLetterOrNumber(prev) && isLetterOrNumber(next)
	case gershayim, '"':
		return gershayim, unicode.Is(unicode.Hebrew, prev) && unicode.Is(unicode.Hebrew, next) &&
			unicode.IsLetter(prev) && unicode.IsLetter(next)
	case middleDot:
		return r, unicode.IsLetter(prev) && unicode.IsLetter(next)
	case '.', ',', ':', '/', '\u066B', '\u066C':
		return r, unicode.IsDigit(prev) && unicode.IsDigit(next)
	}
	return 0, false
}

// base returns the last character of word that is not a mark or a joiner, or 0.
func base(word []rune) rune {
	for i := len(word) - 1; i >= 0; i-- {
		if r := word[i]; !unicode.IsMark(r) && r != zwj && r != zwnj {
			return r
		}
	}
	return 0
}

func isLetterOrNumber(r rune) bool {
	if r == '\u02BB' || r == '\u02BC' {
		return false // letters by category, apostrophes by use
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// appendLower appends the lower case of r. U+0130 is the only character whose
// language-neutral lower case has two characters (Unicode SpecialCasing.txt).
func appendLower(word []rune, r rune) []rune {
	if r == 'İ' {
		return append(word, 'i', '\u0307')
	}
	return append(word, unicode.ToLower(r))
}

// setSigmas gives every small sigma of a word the form its place asks for. The
// two are one letter, so neither the case of the input nor a careless spelling
// may decide.
func setSigmas(word []rune) {
	first := slices.IndexFunc(word, unicode.IsLetter)
	last := len(word) - 1
	for last >= 0 && !unicode.IsLetter(word[last]) {
		last--
	}
	for i, r := range word {
		if r == sigma || r == finalSigma {
			word[i] = sigma
			if i == last && i > first {
				word[i] = finalSigma
			}
		}
	}
}
