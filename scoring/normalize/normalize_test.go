package normalize

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, p := range Profiles() {
		got, err := Lookup(p.Name)
		if err != nil || got.String() != p.String() {
			t.Errorf("Lookup(%q) = %v, %v", p.Name, got, err)
		}
	}
	_, err := Lookup("Plain")
	if err == nil {
		t.Fatal("Lookup of an unknown name succeeded")
	}
	for _, want := range []string{`"Plain"`, "plain"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %s", err, want)
		}
	}
}

func TestProfiles(t *testing.T) {
	byName := func(a, b Profile) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(Profiles(), byName) {
		t.Error("profiles are not sorted")
	}
	for _, p := range Profiles() {
		if p.Version < 1 || len(p.content) == 0 {
			t.Errorf("%s has no version or no content", p.Name)
		}
		if !regexp.MustCompile(`^[a-z0-9.-]+@\d+\+[0-9a-f]{12}$`).MatchString(p.String()) {
			t.Errorf("String() = %q", p)
		}
	}
	// What one caller does to the list must not reach another.
	Profiles()[0].Name = "changed"
	if Profiles()[0].Name == "changed" {
		t.Error("Profiles shares its list")
	}
}

func TestHashCoversEverything(t *testing.T) {
	base := Profile{Name: "x", Version: 1, content: []string{"ab", "c"}}
	for name, p := range map[string]Profile{
		"name":    {Name: "y", Version: 1, content: []string{"ab", "c"}},
		"version": {Name: "x", Version: 2, content: []string{"ab", "c"}},
		"rules":   {Name: "x", Version: 1, content: []string{"ab", "d"}},
		"split":   {Name: "x", Version: 1, content: []string{"a", "bc"}},
	} {
		if p.Hash() == base.Hash() {
			t.Errorf("the hash does not cover the %s", name)
		}
	}
	if again := base.Hash(); again != base.Hash() {
		t.Error("the hash is not deterministic")
	}
}
