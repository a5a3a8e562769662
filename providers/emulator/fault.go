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
	// Answers.
	noPartials, outOfOrder, noAck, emptyAck bool
	early, duplicate, revised               bool
	before, after                           bool          // unsolicited finals
	split                                   time.Duration // 0: off
	// Messages that mean nothing; 0: off.
	garbageEvery, unknownEvery, binaryEvery int
	huge                                    int // bytes
	// The stream.
	silent, neverRead                bool
	readRate                         int // bytes per second; 0: off
	reset, abrupt, halfOpen, closing trigger
	closeCode                        int
	// The handshake.
	hang, plainTLS bool
	refuse         int           // HTTP status; 0: off
	retryAfter     time.Duration // 0: none
}

// trigger is the moment at which a stream breaks.
type trigger struct {
	on    bool
	after time.Duration // of audio; 0: at the force
}

func (t trigger) atForce() bool { return t.on && t.after == 0 }

func (t trigger) reached(at time.Duration) bool { return t.on && t.after > 0 && at >= t.after }

// faultTable lists the faults in the order of --help.
func faultTable() []faultKind {
	flag := func(field func(*faults) *bool) func(*faults, string) error {
		return func(f *faults, _ string) error { *field(f) = true; return nil }
	}
	moment := func(field func(*faults) *trigger) func(*faults, string) error {
		return func(f *faults, arg string) (err error) { *field(f), err = parseTrigger(arg); return err }
	}
	every := func(field func(*faults) *int) func(*faults, string) error {
		return func(f *faults, arg string) (err error) {
			*field(f) = 3
			if arg != "" {
				*field(f), err = number(arg, 1, 1<<20)
			}
			return err
		}
	}
	return []faultKind{
		{FaultDoc{"no-partials", "", "says no partial text"},
			flag(func(f *faults) *bool { return &f.noPartials })},
		{FaultDoc{"out-of-order-partials", "", "repeats an older partial after each newer one; nothing changes where partials only append"},
			flag(func(f *faults) *bool { return &f.outOfOrder })},
		{FaultDoc{"no-ack", "", "the answer to a force lacks its closing mark; an answer without text does not come at all"},
			flag(func(f *faults) *bool { return &f.noAck })},
		{FaultDoc{"empty-ack", "", "answers a force with its closing mark and no text; what was heard is lost"},
			flag(func(f *faults) *bool { return &f.emptyAck })},
		{FaultDoc{"split-final", "DELAY", "answers a force in two finals, DELAY apart"},
			func(f *faults, arg string) (err error) { f.split, err = positiveSpan(arg); return err }},
		{FaultDoc{"final-before-force", "", "makes each word final as soon as it was heard, so that nothing is left for the force"},
			flag(func(f *faults) *bool { return &f.early })},
		{FaultDoc{"unsolicited-final", "[WHEN]", "says a final that nobody asked for: the first words before the force, words never said after its answer, or both (default after)"},
			setUnsolicited},
		{FaultDoc{"duplicate-final", "", "sends the answer to a force twice"},
			flag(func(f *faults) *bool { return &f.duplicate })},
		{FaultDoc{"revised-final", "", "answers a force with a wrong word and then with the right one; for vendors whose finals may change"},
			flag(func(f *faults) *bool { return &f.revised })},
		{FaultDoc{"garbage", "[N]", "sends malformed JSON before every Nth message (default 3)"},
			every(func(f *faults) *int { return &f.garbageEvery })},
		{FaultDoc{"binary-garbage", "[N]", "sends random bytes as a binary message before every Nth message (default 3)"},
			every(func(f *faults) *int { return &f.binaryEvery })},
		{FaultDoc{"unknown-type", "[N]", "sends JSON of an unknown type before every Nth message (default 3)"},
			every(func(f *faults) *int { return &f.unknownEvery })},
		{FaultDoc{"huge-message", "[MIB]", "sends a message of that many MiB before the answer to a force (default 64)"},
			func(f *faults, arg string) error {
				n := 64
				if arg != "" {
					var err error
					if n, err = number(arg, 1, 1024); err != nil {
						return err
					}
				}
				f.huge = n << 20
				return nil
			}},
		{FaultDoc{"silent", "", "accepts the connection and never sends a message, but closes in good order"},
			flag(func(f *faults) *bool { return &f.silent })},
		{FaultDoc{"half-open", "[AFTER]", "says nothing more after AFTER of audio, or from the force on: no answer, no pong, no close; it reads on"},
			moment(func(f *faults) *trigger { return &f.halfOpen })},
		{FaultDoc{"slow-read", "RATE", "reads RATE bytes per second (100 or more) into a small buffer"},
			func(f *faults, arg string) (err error) { f.readRate, err = number(arg, 100, 1<<30); return err }},
		{FaultDoc{"never-read", "", "reads nothing after the handshake"},
			flag(func(f *faults) *bool { return &f.neverRead })},
		{FaultDoc{"close", "CODE[:AFTER]", "closes the stream with that WebSocket close code after AFTER of audio, or at the force"},
			setClose},
		{FaultDoc{"abrupt-close", "[AFTER]", "ends the TCP connection without a close frame after AFTER of audio, or at the force"},
			moment(func(f *faults) *trigger { return &f.abrupt })},
		{FaultDoc{"reset", "[AFTER]", "resets the TCP connection (RST) after AFTER of audio, or at the force"},
			moment(func(f *faults) *trigger { return &f.reset })},
		{FaultDoc{"refuse", "STATUS[:RETRY]", "refuses the handshake with that HTTP status; RETRY (such as 7s) is sent as Retry-After"},
			setRefuse},
		{FaultDoc{"hang-handshake", "", "accepts the TCP connection and never answers the handshake"},
			flag(func(f *faults) *bool { return &f.hang })},
		{FaultDoc{"plain-tls", "", "speaks plain text on a port for TLS"},
			flag(func(f *faults) *bool { return &f.plainTLS })},
	}
}

func setUnsolicited(f *faults, arg string) error {
	switch arg {
	case "before":
		f.before = true
	case "", "after":
		f.after = true
	case "both":
		f.before, f.after = true, true
	default:
		return fmt.Errorf("%q is none of before, after, both", arg)
	}
	return nil
}

func setClose(f *faults, arg string) error {
	code, after, timed := strings.Cut(arg, ":")
	n, err := number(code, 1000, 4999)
	if err != nil {
		return err
	}
	if n == 1005 || n == 1006 || n == 1015 {
		return fmt.Errorf("close code %d cannot be sent", n)
	}
	f.closeCode, f.closing = n, trigger{on: true}
	if timed {
		f.closing.after, err = positiveSpan(after)
	}
	return err
}

func setRefuse(f *faults, arg string) error {
	status, retry, ok := strings.Cut(arg, ":")
	var err error
	if f.refuse, err = number(status, 400, 599); err != nil || !ok {
		return err
	}
	if f.retryAfter, err = positiveSpan(retry); err == nil && f.retryAfter%time.Second != 0 {
		return fmt.Errorf("Retry-After counts whole seconds, not %s", retry)
	}
	return err
}

// parseTrigger reads AFTER; nothing means at the force.
func parseTrigger(arg string) (trigger, error) {
	if arg == "" {
		return trigger{on: true}, nil
	}
	after, err := positiveSpan(arg)
	return trigger{true, after}, err
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
