package emulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing that an emulator does wrong.
type Fault struct {
	Name string
	Arg  string // "" where none was given
}

// FaultDoc describes a fault for --help.
type FaultDoc struct {
	Name string
	Arg  string // placeholder of its argument; "" where it takes none, "[…]" where it is optional
	Doc  string
}

// faultKind is a row of the table of faults.
type faultKind struct {
	FaultDoc
	// set checks the argument and arms the fault.
	set func(f *faults, arg string) error
}

// faults is what is armed; the zero value does no harm.
type faults struct {
	noPartials, noAck, emptyAck, early bool
	silent, duplicate                  bool
	split                              time.Duration // 0: off
	abrupt                             bool
	abruptAfter                        time.Duration // 0: at the force
	closeCode                          int           // 0: off
	refuse                             int           // 0: off
	garbageEvery                       int           // 0: off
}

// faultTable lists the faults in the order of --help.
func faultTable() []faultKind {
	flag := func(field func(*faults) *bool) func(*faults, string) error {
		return func(f *faults, _ string) error { *field(f) = true; return nil }
	}
	return []faultKind{
		{FaultDoc{"no-partials", "", "says no partial text"},
			flag(func(f *faults) *bool { return &f.noPartials })},
		{FaultDoc{"no-ack", "", "the answer to a force lacks its closing mark; an answer without text does not come at all"},
			flag(func(f *faults) *bool { return &f.noAck })},
		{FaultDoc{"empty-ack", "", "answers a force with its closing mark and no text; what was heard is lost"},
			flag(func(f *faults) *bool { return &f.emptyAck })},
		{FaultDoc{"split-final", "DELAY", "answers a force in two finals, DELAY apart"},
			func(f *faults, arg string) (err error) { f.split, err = positiveSpan(arg); return err }},
		{FaultDoc{"final-before-force", "", "makes each word final as soon as it was heard, so that nothing is left for the force"},
			flag(func(f *faults) *bool { return &f.early })},
		{FaultDoc{"abrupt-close", "[AFTER]", "breaks the TCP connection after AFTER of audio, or at the force"},
			func(f *faults, arg string) (err error) {
				f.abrupt = true
				if arg != "" {
					f.abruptAfter, err = positiveSpan(arg)
				}
				return err
			}},
		{FaultDoc{"refuse", "STATUS", "refuses the handshake with that HTTP status"},
			func(f *faults, arg string) (err error) { f.refuse, err = number(arg, 400, 599); return err }},
		{FaultDoc{"close", "CODE", "closes the stream with that WebSocket close code at the force"},
			func(f *faults, arg string) (err error) {
				f.closeCode, err = number(arg, 1000, 4999)
				if err == nil && (f.closeCode == 1005 || f.closeCode == 1006 || f.closeCode == 1015) {
					return fmt.Errorf("close code %d cannot be sent", f.closeCode)
				}
				return err
			}},
		{FaultDoc{"silent", "", "accepts the connection and never sends a message"},
			flag(func(f *faults) *bool { return &f.silent })},
		{FaultDoc{"garbage", "[N]", "sends malformed JSON before every Nth message (default 3)"},
			func(f *faults, arg string) (err error) {
				f.garbageEvery = 3
				if arg != "" {
					f.garbageEvery, err = number(arg, 1, 1<<20)
				}
				return err
			}},
		{FaultDoc{"duplicate-final", "", "sends the answer to a force twice"},
			flag(func(f *faults) *bool { return &f.duplicate })},
	}
}

// FaultDocs lists all faults for --help.
func FaultDocs() []FaultDoc {
	var docs []FaultDoc
	for _, k := range faultTable() {
		docs = append(docs, k.FaultDoc)
	}
	return docs
}

// ParseFault reads NAME or NAME=ARG and checks both.
func ParseFault(text string) (Fault, error) {
	name, arg, _ := strings.Cut(text, "=")
	f := Fault{Name: name, Arg: arg}
	return f, new(faults).arm(f)
}

// arm switches one fault on.
func (f *faults) arm(fault Fault) error {
	table := faultTable()
	i := slices.IndexFunc(table, func(k faultKind) bool { return k.Name == fault.Name })
	if i < 0 {
		var names []string
		for _, k := range table {
			names = append(names, k.Name)
		}
		return fmt.Errorf("unknown fault %q; known are %s", fault.Name, strings.Join(names, ", "))
	}
	k := table[i]
	switch {
	case k.Arg == "" && fault.Arg != "":
		return fmt.Errorf("fault %s takes no argument, got %q", k.Name, fault.Arg)
	case k.Arg != "" && k.Arg[0] != '[' && fault.Arg == "":
		return fmt.Errorf("fault %s needs an argument: %s=%s", k.Name, k.Name, k.Arg)
	}
	if err := k.set(f, fault.Arg); err != nil {
		return fmt.Errorf("fault %s: %w", k.Name, err)
	}
	return nil
}

func positiveSpan(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > time.Hour {
		return 0, fmt.Errorf("%q is not a duration above 0 and up to 1h, such as 300ms", text)
	}
	return d, nil
}

func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, least, most)
	}
	return n, nil
}
