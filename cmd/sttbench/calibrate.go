package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"sttbench/calibrate"
)

type calibrateCmd struct {
	Streams  int           `default:"1" placeholder:"N" help:"Streams at the same time (${default}); with --find-max, where the search begins."`
	Duration time.Duration `placeholder:"D" help:"Time that counts: 20s, with --find-max 5s for each step."`
	TLS      bool          `name:"tls" help:"Stream over TLS."`
	FindMax  bool          `help:"Search the highest number of streams inside the limits."`
	JSON     bool          `name:"json" help:"Print one JSON document."`
	Echo     bool          `hidden:"" help:"Serve the bare exchange; calibrate starts itself with it."`
}

// Help implements kong.HelpProvider.
func (calibrateCmd) Help() string {
	return `Streams to an emulator in a process of its own that answers after known delays, forces endpoints all the time, and compares the times to final that a report would show with those that the emulator noted. In the same seconds a small message goes back and forth over a bare TCP connection: the floor, below which this machine cannot go.

    lateness     start of an audio write − when it was due
    ttf error    reported time to final − the true one; bias is its median, the rest is without sign
    stamp error  our receive stamp of an answer − the emulator's before it was sent
    floor        round trip of the bare exchange, another process's wake-up included

Each stream forces every 50 ms, with many streams less often: 20 s of a single one give the answers that a 99th percentile needs. steal is what the host took from this virtual machine; above 0.5 % the figures are the host's as much as ours.

Examples:

    sttbench calibrate
    sttbench calibrate --streams 50 --tls --json | jq .ttf_error_us
    sttbench calibrate --find-max

The result is kept in the user's cache folder: later runs store it with their results, and their reports print it as the harness error.

The exit code is 4 when this machine was so late that turns became client_invalid, or when --find-max finds not even one stream inside the limits. Figures outside the limits are said, and lead to no other exit code. It needs Linux.`
}

// Run implements the command.
func (c *calibrateCmd) Run(ctx context.Context, a *app) error {
	if c.Echo {
		return serveEcho(ctx, a)
	}
	if c.Duration == 0 {
		c.Duration = 20 * time.Second
		if c.FindMax {
			c.Duration = 5 * time.Second
		}
	}
	if err := c.plan(c.Streams).Check(); err != nil {
		return usage(err, "see sttbench calibrate --help")
	}
	if limit := calibrate.StreamLimit(); c.Streams > limit {
		return input(fmt.Errorf("%d streams: the limit of open files allows %d", c.Streams, limit), "raise it with ulimit -n")
	}
	if _, err := calibrate.TakeSample(); err != nil {
		return err
	}
	if c.FindMax {
		return c.search(ctx, a)
	}
	fmt.Fprintf(a.stderr, "%s for %v …\n", streams(c.Streams, c.TLS), c.Duration)
	report, err := calibrateOnce(ctx, c.plan(c.Streams), c.TLS)
	if err != nil {
		return err
	}
	if err := c.print(a, report); err != nil {
		return err
	}
	if err := spoiled(report); err != nil {
		return err
	}
	a.keepCalibration(report)
	return nil
}

func (c *calibrateCmd) plan(streams int) calibrate.Plan {
	return calibrate.Plan{Streams: streams, Duration: c.Duration}
}

func (c *calibrateCmd) print(a *app, r *calibrate.Report) error {
	if c.JSON {
		return a.stdout.json(r)
	}
	return printCalibration(a.stdout, r)
}

// spoiled is the error of a calibration that is no valid measurement.
func spoiled(r *calibrate.Report) error {
	switch {
	case r.ClientInvalid > 0:
		return &exitError{exitClientInvalid, fmt.Errorf("%d turns were spoiled by this machine's own lateness", r.ClientInvalid), "try fewer streams"}
	case r.Unmatched > 0:
		return fmt.Errorf("%d forced endpoints have no answer that could be compared", r.Unmatched)
	case r.Answers == 0:
		return errors.New("no forced endpoint fell into the time that counts")
	}
	return nil
}

// tries is how often a step of the search is measured when the host disturbs it.
const tries = 3

// search prints the report of the highest number of streams inside the limits.
func (c *calibrateCmd) search(ctx context.Context, a *app) error {
	limits := calibrate.DefaultLimits()
	var best, last *calibrate.Report
	fine := func(n int) (bool, error) {
		for range tries {
			r, err := calibrateOnce(ctx, c.plan(n), c.TLS)
			switch {
			case ctx.Err() != nil:
				return false, ctx.Err()
			case err != nil: // too many streams show in many ways
				fmt.Fprintf(a.stderr, "%s: %s\n", streams(n, c.TLS), plainText(err.Error()))
				return false, nil
			}
			fmt.Fprintf(a.stderr, "%s: %s\n", streams(n, c.TLS), judgement(limits, r))
			last = r
			if len(limits.Excesses(r)) == 0 {
				best = r
				return true, nil
			}
			if limits.Quiet(r) {
				break
			}
		}
		return false, nil
	}
	// The search goes up to what the longest audio in all allows, too.
	most := min(calibrate.StreamLimit(), int(calibrate.MaxAudio/c.Duration))
	found, err := calibrate.Search(c.Streams, most, fine)
	if err != nil {
		return err
	}
	if best != nil {
		last = best
	}
	if last == nil {
		return errors.New("nothing could be measured")
	}
	last.MaxStreams = &found
	if err := c.print(a, last); err != nil {
		return err
	}
	if found == 0 {
		return &exitError{exitClientInvalid, errors.New("not even one stream is inside the limits"), "use a machine with idle processors"}
	}
	return nil
}

// serveEcho is the other end of the bare exchange.
func serveEcho(ctx context.Context, a *app) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "listening %s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	return calibrate.Echo(ctx, l)
}
