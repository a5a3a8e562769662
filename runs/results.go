package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"sttbench/endpoint"
	"sttbench/record"
	"sttbench/regular"
	"sttbench/scoring/normalize"
	"sttbench/scoring/wer"
)

// OutcomeLine is one line of outcomes.jsonl: one scheduled turn.
type OutcomeLine struct {
	Target string `json:"target"`
	Item   string `json:"item"`
	Repeat int    `json:"repeat"`
	// Of is the number of turns that the session schedules.
	Of int `json:"of"`
	endpoint.Outcome
	// Settled is the text at the session's end, in the session's last line only.
	Settled string `json:"settled_text,omitempty"`
	// What the whole session counts, in its last line only.
	Session *SessionCounts `json:"session,omitempty"`
}

// SessionCounts are the figures that belong to a session as a whole.
type SessionCounts struct {
	Rewritten         int             `json:"rewritten_words"`
	Revised           int             `json:"revised_finals"`
	UnsolicitedFinals int             `json:"unsolicited_finals"`
	UnsolicitedAcks   int             `json:"unsolicited_acks"`
	DecodeErrors      int             `json:"decode_errors"`
	LateP99           endpoint.Millis `json:"late_p99_ms"`
	LateMax           endpoint.Millis `json:"late_max_ms"`
	BlockedMax        endpoint.Millis `json:"blocked_max_ms"`
	Connect           endpoint.Millis `json:"connect_ms"` // from the start to audio
	RTT               endpoint.Millis `json:"rtt_ms"`
	Warm              bool            `json:"warm"`
	// NotScored says why a text that counts could not be scored.
	NotScored string `json:"not_scored,omitempty"`
}

// ScoreLine is one line of scores.jsonl: one session with a reference whose text
// counts.
type ScoreLine struct {
	Target  string         `json:"target"`
	Item    string         `json:"item"`
	Repeat  int            `json:"repeat"`
	Profile string         `json:"profile"` // name, version and hash
	Class   endpoint.Class `json:"outcome"` // of the last turn
	// Final scores the text held when the last turn was decided; FirstFinal and
	// Partial the text at ttf_first and ttfp, where there is such an instant.
	Final      wer.Alignment `json:"final"`
	WER        *float64      `json:"wer"`
	FirstFinal *wer.Counts   `json:"first_final"`
	Partial    *wer.Counts   `json:"partial"`
	Tail       wer.Tail      `json:"tail"`
}

// Replay computes outcomes, scores and aggregate of a run directory anew and
// writes them. Nothing is streamed. The same sessions give the same bytes. When ctx
// ends, the files stay as they were.
func Replay(ctx context.Context, path string) (*Aggregate, error) {
	d, cfg, err := open(path)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return compute(ctx, d, cfg)
}

// Load reads the aggregate of a run directory as it was computed last.
func Load(path string) (*Aggregate, error) {
	data, err := regular.ReadFile(filepath.Join(path, aggregateFile), maxLines)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DirError{path, errors.New("there is no " + aggregateFile), "compute it with sttbench replay " + path}
	}
	if err != nil {
		return nil, &DirError{path, err, ""}
	}
	a := new(Aggregate)
	if err := json.Unmarshal(data, a); err != nil {
		return nil, &DirError{path, fmt.Errorf("%s: %w", aggregateFile, err), "compute it again with sttbench replay " + path}
	}
	return a, nil
}

// compute judges and scores every session of the plan, recorded or not, in the
// order of the configuration.
func compute(ctx context.Context, d *dir, cfg *Config) (*Aggregate, error) {
	profile, err := normalize.Lookup(cfg.Profile)
	if err != nil {
		return nil, &configError{err}
	}
	items, err := lines[record.Item](d, itemsFile)
	if err != nil {
		return nil, err
	}
	turns, err := lines[turnsLine](d, turnsFile)
	if err != nil {
		return nil, err
	}
	if len(turns) != len(items) {
		return nil, &DirError{d.path, fmt.Errorf("%s has %d lines, %s %d", itemsFile, len(items), turnsFile, len(turns)), ""}
	}
	agg := newAggregation(cfg, profile, items)
	var outcomes []OutcomeLine
	var scores []ScoreLine
	for i, t := range cfg.Targets {
		for k, it := range items {
			if !hasTag(it.Tags, t.Tags) {
				continue
			}
			for repeat := 1; repeat <= cfg.Repeats; repeat++ {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				s, err := d.session(t.Name, it.ID, repeat)
				if err != nil {
					return nil, err
				}
				if s == nil {
					s = notRun(cfg, t, it, turns[k].Turns, repeat)
				} else if err := belongs(s, t.Name, it, turns[k].Turns, repeat); err != nil {
					return nil, &DirError{d.path, fmt.Errorf("%s: %w", sessionFile(t.Name, it.ID, repeat), err),
						"remove the file and resume the run to measure the session again"}
				}
				lines, score := judge(cfg, profile, s)
				outcomes = append(outcomes, lines...)
				if score != nil {
					scores = append(scores, *score)
				}
				agg.add(i, s, lines, score)
			}
		}
	}
	result, err := agg.finish()
	if err != nil {
		return nil, err
	}
	if result.Harness, err = d.harness(); err != nil {
		return nil, err
	}
	if err := putLines(d, outcomesFile, outcomes); err != nil {
		return nil, err
	}
	if err := putLines(d, scoresFile, scores); err != nil {
		return nil, err
	}
	err = d.write(aggregateFile, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(result)
	})
	return result, err
}

// belongs checks that a record is of the session whose name it has: a file that was
// copied or edited must not give another session's figures.
func belongs(s *record.Session, target string, it record.Item, turns record.Turns, repeat int) error {
	o := s.Open
	switch {
	case o.Target.Name != target || o.Item.ID != it.ID || o.Repeat != repeat:
		return fmt.Errorf("is the record of %s/%s.%d", o.Target.Name, o.Item.ID, o.Repeat)
	case o.Item.Hash != it.Hash || o.Item.Reference != it.Reference:
		return errors.New("was made with another audio or reference")
	case s.Turns.Model != turns.Model || s.Turns.Params != turns.Params || !slices.Equal(s.Turns.List, turns.List):
		return errors.New("was made with other turns than " + turnsFile + " has")
	}
	return nil
}

// notRun stands for a session that was scheduled and never recorded, so that the
// classes add up to the plan.
func notRun(cfg *Config, t TargetConfig, it record.Item, turns record.Turns, repeat int) *record.Session {
	return &record.Session{
		Open: record.Open{
			Session: fmt.Sprintf("%s/%s.%d", t.Name, it.ID, repeat), Item: it, Repeat: repeat,
			Target: record.Target{Name: t.Name, Provider: t.Provider, EveryTurn: cfg.Turns == "every", Forced: t.Force != "off"},
		},
		Turns: turns,
		Close: record.Close{How: record.Cancelled, Detail: "not run"},
	}
}

// judge makes the lines of one session.
func judge(cfg *Config, profile normalize.Profile, s *record.Session) ([]OutcomeLine, *ScoreLine) {
	res := endpoint.Outcomes(s, cfg.rules())
	var lines []OutcomeLine
	for _, o := range res.Turns {
		lines = append(lines, OutcomeLine{Target: s.Open.Target.Name, Item: s.Open.Item.ID, Repeat: s.Open.Repeat,
			Of: len(res.Turns), Outcome: o})
	}
	last := &lines[len(lines)-1]
	last.Settled = res.SettledText
	last.Session = counts(s, res)
	if !s.Open.Item.HasReference || !last.Class.Scored() {
		return lines, nil
	}
	score, err := scoreText(profile, s.Open.Item.Reference, last)
	if err != nil {
		// What one provider says must not cost the results of all.
		last.Session.NotScored = err.Error()
	}
	return lines, score
}

func counts(s *record.Session, res endpoint.Result) *SessionCounts {
	return &SessionCounts{
		Rewritten: res.Rewritten, Revised: res.Revised, UnsolicitedFinals: res.UnsolicitedFinals,
		UnsolicitedAcks: res.UnsolicitedAcks, DecodeErrors: res.DecodeErrors,
		LateP99: endpoint.ToMillis(s.Sent.LateP99), LateMax: endpoint.ToMillis(s.Sent.LateMax),
		BlockedMax: endpoint.ToMillis(s.Sent.BlockedMax), Connect: endpoint.ToMillis(max(0, -s.Connect.Start)),
		RTT: endpoint.ToMillis(s.Connect.RTT), Warm: s.Connect.Warm,
	}
}

func scoreText(profile normalize.Profile, reference string, o *OutcomeLine) (*ScoreLine, error) {
	ref := profile.Tokens(reference)
	final, err := wer.Align(ref, profile.Tokens(o.FinalText))
	if err != nil {
		return nil, err
	}
	line := &ScoreLine{Target: o.Target, Item: o.Item, Repeat: o.Repeat, Profile: profile.String(), Class: o.Class,
		Final: final, Tail: wer.TailError(final, wer.TailWords)}
	if rate, ok := final.WER(); ok {
		line.WER = &rate
	}
	part := func(has bool, text string) (*wer.Counts, error) {
		if !has {
			return nil, nil
		}
		a, err := wer.Align(ref, profile.Tokens(text))
		return &a.Counts, err
	}
	if line.FirstFinal, err = part(o.TTFFirst != nil, o.FirstFinalText); err != nil {
		return nil, err
	}
	line.Partial, err = part(o.TTFP != nil, o.PartialText)
	return line, err
}
