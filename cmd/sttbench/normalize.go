package main

import (
	"context"
	"fmt"

	"sttbench/scoring/normalize"
)

type normalizeCmd struct {
	Profile string `required:"" placeholder:"NAME" help:"Normalization profile; sttbench score --profiles lists them."`
}

// Help implements kong.HelpProvider.
func (normalizeCmd) Help() string {
	return `Reads lines from standard input and prints each one normalized, one line out for one line in, as soon as it is there.

Example:

    echo "Hello, World!" | sttbench normalize --profile plain`
}

// Run implements the command.
func (c *normalizeCmd) Run(ctx context.Context, a *app) error {
	profile, err := lookupProfile(c.Profile)
	if err != nil {
		return err
	}
	return eachLine(ctx, "standard input", a.stdin, func(_ int, line []byte) error {
		_, err := fmt.Fprintln(a.stdout, profile.Normalize(string(line)))
		return err
	})
}

// lookupProfile finds a profile that the command line named.
func lookupProfile(name string) (normalize.Profile, error) {
	p, err := normalize.Lookup(name)
	if err != nil {
		return p, usage(err, "sttbench score --profiles lists them")
	}
	return p, nil
}
