package catalogue

import (
	"slices"
	"testing"
)

func TestCatalogue(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names are not sorted or not unique: %v", names)
	}
	for _, n := range names {
		if e, err := Lookup(n); err != nil || e.Dialect.Describe().Name != n || e.Emulator == nil {
			t.Errorf("%s: %v %v", n, e, err)
		}
	}
	if _, err := Lookup("deepgrm"); err == nil || err.Error() != `unknown provider "deepgrm": want one of deepgram, openai, vosk` {
		t.Errorf("error %v", err)
	}
}
