package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sttbench/corpus"
	"sttbench/providers"
	"sttbench/runs"
	"sttbench/vad"
)

// The exit codes.
const (
	exitOK            = 0
	exitFailed        = 1 // a measurement failed
	exitUsage         = 2 // the command line makes no sense
	exitInput         = 3 // a configuration or an input file cannot be used
	exitClientInvalid = 4 // this machine spoiled the measurement
)

// exitError is an error with the exit code it leads to and the way out of it.
// Where err is nil, everything has been said already.
type exitError struct {
	code int
	err  error
	hint string // may be empty
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error, hint string) error { return &exitError{exitUsage, err, hint} }
func input(err error, hint string) error { return &exitError{exitInput, err, hint} }

// report tells the user of an error and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	e := explain(ctx, err)
	if e.err != nil {
		fmt.Fprintln(a.stderr, "sttbench:", plainText(e.err.Error()))
	}
	if e.hint != "" {
		fmt.Fprintln(a.stderr, "hint:", e.hint)
	}
	return e.code
}

// explain finds exit code and hint of the errors that packages return.
func explain(ctx context.Context, err error) *exitError {
	var (
		known    *exitError
		config   *providers.ConfigError
		dir      *runs.DirError
		missing  *vad.MissingError
		audio    *corpus.AudioError
		manifest *corpus.ManifestError
	)
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return &exitError{exitFailed, context.Cause(ctx), ""}
	case errors.As(err, &config):
		return &exitError{exitInput, err, config.Hint}
	case errors.As(err, &dir):
		return &exitError{exitInput, err, dir.Hint}
	case errors.As(err, &missing):
		return &exitError{exitInput, fmt.Errorf("%s not found (looked for %s)", missing.What, strings.Join(missing.Looked, ", ")),
			"run `make deps` or set " + missing.Env}
	case errors.As(err, &audio), errors.As(err, &manifest), errors.Is(err, runs.ErrConfig):
		return &exitError{exitInput, err, ""}
	}
	return &exitError{exitFailed, err, ""}
}
