package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/term"

	"sttbench/providers"
	"sttbench/regular"
)

// app is what a command works with beside its flags.
type app struct {
	stdin          io.Reader
	stdout, stderr *output
	env            func(string) string
	// screen is the terminal that standard error leads to, nil where it leads
	// elsewhere.
	screen *screen
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{stdin: stdin, stdout: &output{w: stdout}, stderr: &output{w: stderr}, env: os.Getenv}
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.screen = &screen{
			file:   f,
			redraw: a.env("NO_COLOR") == "" && a.env("TERM") != "dumb",
			width: func() int {
				w, _, err := term.GetSize(int(f.Fd()))
				if err != nil || w <= 0 {
					return 80
				}
				return w
			},
		}
	}
	return a
}

// screen is a terminal for progress.
type screen struct {
	file   *os.File
	redraw bool // control codes are welcome
	width  func() int
}

// hide keeps a credential, besides those hidden before, out of everything that is
// printed from now on: some servers repeat it in their error messages.
func (a *app) hide(s providers.Secret) {
	a.stdout.hide(s)
	a.stderr.hide(s)
}

// warnKeyless tells of a target that is spoken to without a key, which is right
// only for servers that need none.
func (a *app) warnKeyless(name, keyVar string, key providers.Secret) {
	if keyVar != "" && key.Empty() {
		a.warn(fmt.Errorf("%s: %s is not set: streaming without a key", name, keyVar))
	}
}

// warn tells of something that does not stop the command.
func (a *app) warn(err error) { fmt.Fprintln(a.stderr, "sttbench: warning:", plainText(err.Error())) }

// output is a standard stream. It remembers its first write error, so that
// commands need not check each line, and hides credentials. Whoever prints a
// credential does it in one Write.
type output struct {
	mu     sync.Mutex
	w      io.Writer
	hidden redactor
	err    error
}

// Write implements io.Writer. After the first error it writes nothing more.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		_, o.err = o.w.Write(o.hidden.redact(p))
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

func (o *output) hide(s providers.Secret) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hidden.forms = append(o.hidden.forms, newRedactor(s).forms...)
}

// failure is the first write error.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return fmt.Errorf("write standard output: %w", regular.WithoutPath(o.err))
}

// json prints v as one line of JSON.
func (o *output) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := o.Write(b.Bytes())
	return err
}

// redactor replaces credentials wherever they stand, as they are or as JSON
// writes them.
type redactor struct{ forms [][]byte }

// shortestKey is the least length of a credential that is looked for, in bytes.
// No vendor's key is that short; a placeholder such as "test" is, and replacing
// it would spoil the words of transcripts and the keys of JSON.
const shortestKey = 12

func newRedactor(s providers.Secret) redactor {
	if len(s.Reveal()) < shortestKey {
		return redactor{}
	}
	r := redactor{[][]byte{[]byte(s.Reveal())}}
	for _, html := range []bool{false, true} { // the two ways to write <, > and &
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if err := enc.Encode(s.Reveal()); err != nil { // strings can always be encoded
			panic(err)
		}
		// Without the quotes and the newline.
		r.forms = append(r.forms, b.Bytes()[1:b.Len()-2])
	}
	return r
}

func (r redactor) redact(p []byte) []byte {
	for _, form := range r.forms {
		p = bytes.ReplaceAll(p, form, []byte("[secret]"))
	}
	return p
}

// plainText makes text of others fit for a terminal: what a provider sends must
// not move the cursor.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
