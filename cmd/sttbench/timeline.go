package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"sttbench/endpoint"
	"sttbench/providers"
	"sttbench/record"
	"sttbench/streamer"
)

// timeline shows a session on a terminal while it runs. It only watches: the
// measuring goroutines hand it what happens and never wait for it.
type timeline struct {
	out    io.Writer
	screen *screen
	turns  []record.Turn
	force  string // the provider's message, for people
	text   endpoint.Transcript
	mark   *record.Mark // the latest turn end; times count from it
	drawn  bool         // the cursor stands behind a partial
}

// backlog is how many happenings may wait for the terminal before some are not
// shown.
const backlog = 4096

func newTimeline(out io.Writer, s *screen, turns []record.Turn, d providers.Description) *timeline {
	return &timeline{out: out, screen: s, turns: turns, force: d.ForceMessage}
}

// start returns the observer of a session and a function that ends the display;
// call that after the session.
func (t *timeline) start() (observe func(streamer.Observation), stop func()) {
	queue := make(chan streamer.Observation, backlog)
	missed := 0
	var mu sync.Mutex // protects missed: two goroutines observe
	var done sync.WaitGroup
	done.Go(func() {
		for o := range queue {
			t.show(o)
		}
	})
	observe = func(o streamer.Observation) {
		if o.Started != nil { // still belongs to the session
			c := *o.Started
			o.Started = &c
		}
		select {
		case queue <- o:
		default:
			mu.Lock()
			missed++
			mu.Unlock()
		}
	}
	stop = func() {
		close(queue)
		done.Wait()
		t.wipe()
		if missed > 0 {
			fmt.Fprintf(t.out, "(%d events are not shown: the terminal was too slow)\n", missed)
		}
	}
	return observe, stop
}

func (t *timeline) show(o streamer.Observation) {
	switch {
	case o.Started != nil:
		t.line(0, "start", "audio flows to "+o.Started.Address)
	case o.Mark != nil:
		t.turnEnd(o.Mark)
	case o.Event != nil:
		for _, d := range o.Event.Decoded {
			t.event(o.Event.At(), d)
		}
	}
}

// turnEnd shows the speech end, its detection and the force, which are all known
// when the force has gone out.
func (t *timeline) turnEnd(m *record.Mark) {
	turn := t.turns[m.Turn]
	t.mark = nil
	t.line(turn.SE, "SE", "end of speech")
	t.line(turn.EOS, "EOS", fmt.Sprintf("detected %d ms later", turn.Hangover().Milliseconds()))
	if m.Forced {
		t.line(m.T0, "T0", "endpoint forced: "+t.force)
	} else {
		t.line(m.T0, "T0", "endpoint left to the provider")
	}
	t.mark = m
}

func (t *timeline) event(at time.Duration, d record.Decoded) {
	t.text.Add(d)
	switch d.Kind {
	case record.Partial:
		t.partial(at)
	case record.Final:
		if d.TextBearing() || d.Closes {
			t.line(at, "final", fmt.Sprintf("%q%s", d.Text, t.fromSE(at)))
		}
	case record.Ack, record.EndOfTurn:
		t.line(at, strings.ReplaceAll(string(d.Kind), "_", " "), d.Cause)
	case record.Warning, record.Error:
		t.line(at, string(d.Kind), strings.TrimSpace(d.Cause+" "+d.Text))
	}
}

// fromSE is the time since the end of speech, once that has come.
func (t *timeline) fromSE(at time.Duration) string {
	if t.mark == nil {
		return ""
	}
	return fmt.Sprintf("  (%.1f ms after SE)", float64(endpoint.ToMillis(at-t.turns[t.mark.Turn].SE)))
}

// partial redraws the one line that changes. A terminal that must not be
// redrawn is spared the partials.
func (t *timeline) partial(at time.Duration) {
	if !t.screen.redraw {
		return
	}
	head := t.head(at, "partial")
	room := max(t.screen.width()-runewidth.StringWidth(head)-1, 8)
	text := plainText(t.text.Text())
	if over := runewidth.StringWidth(text) - room; over > 0 { // the newest words matter
		text = runewidth.TruncateLeft(text, over+1, "…")
	}
	fmt.Fprintf(t.out, "\r\x1b[K%s%s", head, text)
	t.drawn = true
}

// line prints a line that stays.
func (t *timeline) line(at time.Duration, what, text string) {
	t.wipe()
	fmt.Fprintf(t.out, "%s%s\n", t.head(at, what), plainText(text))
}

// head begins a line: before the first turn end with the time since the start,
// then with the time since the latest T0.
func (t *timeline) head(at time.Duration, what string) string {
	if t.mark == nil || at < t.mark.F0 {
		return fmt.Sprintf("%11.3f s  %-11s  ", at.Seconds(), what)
	}
	return fmt.Sprintf("%+10.1f ms  %-11s  ", float64(endpoint.ToMillis(at-t.mark.T0)), what)
}

// wipe takes the partial off the screen.
func (t *timeline) wipe() {
	if t.drawn {
		fmt.Fprint(t.out, "\r\x1b[K")
		t.drawn = false
	}
}
