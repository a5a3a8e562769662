package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"sttbench/regular"
	"sttbench/scoring/normalize"
	"sttbench/scoring/wer"
)

type scoreCmd struct {
	Profile  string `placeholder:"NAME" help:"Normalization profile."`
	In       string `placeholder:"FILE" help:"Read from this file instead of standard input."`
	Profiles bool   `help:"List the profiles with version and content hash, and exit."`
}

// Help implements kong.HelpProvider.
func (scoreCmd) Help() string {
	return `Reads one JSON object per line, {"id": …, "ref": what was said, "hyp": the transcript}; other keys are ignored. Prints one JSON object per line, as soon as its input is there, with the counts, the word error rate (a fraction; null where the reference has no words and the transcript has) and the alignment: "=" hit, "S" substitution, "D" deletion, "I" insertion.

Scores under different profiles must not be compared; each result names its profile with version and hash.

Examples:

    sttbench score --profile plain --in pairs.jsonl
    echo '{"id":"1","ref":"four queen of clubs","hyp":"for queen of clubs"}' | sttbench score --profile plain | jq .wer

A line that cannot be scored ends the command with exit code 3.`
}

// pair is one line of input. Pointers tell a missing key from an empty text.
type pair struct {
	ID  *string `json:"id"`
	Ref *string `json:"ref"`
	Hyp *string `json:"hyp"`
}

// score is one line of output.
type score struct {
	ID      string `json:"id"`
	Profile string `json:"profile"` // name@version+hash
	wer.Counts
	WER       *float64 `json:"wer"`
	Alignment []wer.Op `json:"alignment"`
}

// Run implements the command.
func (c *scoreCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.Profiles:
		return listProfiles(a)
	case c.Profile == "":
		return usage(errors.New("missing flags: --profile=NAME"), "sttbench score --profiles lists them")
	}
	profile, err := lookupProfile(c.Profile)
	if err != nil {
		return err
	}
	name, in := "standard input", a.stdin
	if c.In != "" {
		f, err := os.Open(c.In)
		if err != nil {
			return input(fmt.Errorf("%s: %w", c.In, regular.WithoutPath(err)), "")
		}
		defer f.Close()
		name, in = c.In, f
	}
	stamp := profile.String()
	return eachLine(ctx, name, in, func(n int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		s, err := scoreLine(profile, line)
		if err != nil {
			return input(fmt.Errorf("%s:%d: %w", name, n, err), "")
		}
		s.Profile = stamp
		return a.stdout.json(s)
	})
}

func scoreLine(profile normalize.Profile, line []byte) (score, error) {
	var p pair
	if err := json.Unmarshal(line, &p); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return score{}, fmt.Errorf("not valid JSON at byte %d: %w", syntax.Offset, err)
		}
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field != "" {
			return score{}, fmt.Errorf("key %q: want a string, got a JSON %s", kind.Field, kind.Value)
		}
		return score{}, fmt.Errorf("want a JSON object with the keys id, ref and hyp: %w", err)
	}
	for _, field := range []struct {
		key   string
		value *string
	}{{"id", p.ID}, {"ref", p.Ref}, {"hyp", p.Hyp}} {
		if field.value == nil {
			return score{}, fmt.Errorf("key %q is missing", field.key)
		}
	}
	a, err := wer.Align(profile.Tokens(*p.Ref), profile.Tokens(*p.Hyp))
	if err != nil {
		return score{}, err
	}
	return score{ID: *p.ID, Counts: a.Counts, WER: rate(a.WER()), Alignment: a.Ops}, nil
}

// rate is nil for a rate that does not exist.
func rate(r float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &r
}

func listProfiles(a *app) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSION\tSHA-256")
	for _, p := range normalize.Profiles() {
		fmt.Fprintf(table, "%s\t%d\t%s\n", p.Name, p.Version, p.Hash())
	}
	return table.Flush()
}
