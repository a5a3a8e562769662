// Package catalogue is the one visible table of all vendors. A new vendor is its
// own folder and one line here.
package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"sttbench/providers"
	"sttbench/providers/deepgram"
	"sttbench/providers/emulator"
	"sttbench/providers/openai"
	"sttbench/providers/vosk"
)

// Entry is one vendor: how to speak to it, and how to play it on loopback.
type Entry struct {
	Dialect  providers.Dialect
	Emulator emulator.Vendor
}

// All lists the vendors by name.
func All() []Entry {
	return []Entry{
		{deepgram.Dialect{}, deepgram.Emulator{}},
		{openai.Dialect{}, openai.Emulator{}},
		{vosk.Dialect{}, vosk.Emulator{}},
	}
}

// Lookup finds a vendor by name. The error lists the names.
func Lookup(name string) (Entry, error) {
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Dialect.Describe().Name == name })
	if i < 0 {
		return Entry{}, fmt.Errorf("unknown provider %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	return all[i], nil
}

// Names lists the vendors' names.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Dialect.Describe().Name)
	}
	return names
}
