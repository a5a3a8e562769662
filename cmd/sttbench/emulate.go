package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"sttbench/providers/catalogue"
	"sttbench/providers/emulator"
	"sttbench/regular"
)

type emulateCmd struct {
	Provider      string        `arg:"" help:"Provider to play, as sttbench providers lists it."`
	Listen        string        `default:"127.0.0.1:0" placeholder:"ADDR" help:"Loopback address to listen on (${default}); port 0 takes a free one."`
	Script        string        `placeholder:"FILE" help:"What the emulator hears; without it, one sentence over and over."`
	PartialLag    time.Duration `placeholder:"D" default:"0s" help:"How far partial texts trail behind the audio (${default})."`
	FinalDelay    string        `placeholder:"D[~J]" default:"0s" help:"Time from a forced endpoint to its answer (${default})."`
	WordErrorRate float64       `placeholder:"X" default:"0" help:"Probability from 0 to 1 that a word is misheard (${default})."`
	Seed          uint64        `placeholder:"N" default:"0" help:"Seed of ids, delays and errors (${default}): the same seed draws the same."`
	Fault         []string      `sep:"none" placeholder:"NAME[=ARG]" help:"Something to do wrong; may be repeated. The faults are listed below."`
	TLS           bool          `name:"tls" help:"Serve wss with a certificate made at the start."`
	Certificate   string        `placeholder:"FILE" help:"Write the certificate of --tls as PEM, for clients to trust."`
	Truth         string        `placeholder:"FILE" help:"Write what was received and sent, with stamps, as JSON lines."`
}

// Help implements kong.HelpProvider.
func (emulateCmd) Help() string {
	var faults bytes.Buffer
	table := tabwriter.NewWriter(&faults, 0, 0, 2, ' ', 0)
	for _, f := range emulator.FaultDocs() {
		name := f.Name
		switch {
		case strings.HasPrefix(f.Arg, "["):
			name += "[=" + f.Arg[1:]
		case f.Arg != "":
			name += "=" + f.Arg
		}
		fmt.Fprintf(table, "    %s\t%s\n", name, f.Doc)
	}
	table.Flush()
	return `Prints "listening ws://ADDR" (wss with --tls) on standard output when it is ready, and serves until Ctrl-C. Emulators accept every API key that does not begin with "bad".

Recognition follows a script, counted against the audio received: plain text (said once, a word per 300 ms of audio), or a JSON object with times in seconds:

    {"words": [{"w": "turn", "start_s": 0.25, "end_s": 0.5}, {"w": "left", "end_s": 0.9}]}

A dataset's manifest (.yaml) is a script too: each session then hears the reference of the item whose audio it sends.

A delay is constant (120ms), uniform (120ms~30ms), normal (120ms~normal:30ms) or heavy-tailed (120ms~pareto:1.5).

Faults:

` + faults.String() + `
Example:

    sttbench emulate deepgram --listen 127.0.0.1:9000 --final-delay 150ms~50ms --fault split-final=80ms

    DEEPGRAM_API_KEY=test sttbench probe deepgram --audio call.wav --endpoint ws://127.0.0.1:9000

The certificate of --tls signs itself. On Linux, clients in Go, sttbench among them, trust it by SSL_CERT_FILE=FILE; Node.js by NODE_EXTRA_CA_CERTS=FILE.`
}

// Run implements the command.
func (c *emulateCmd) Run(ctx context.Context, a *app) error {
	entry, err := lookupProvider(c.Provider)
	if err != nil {
		return err
	}
	settings, err := c.settings()
	if err != nil {
		return err
	}
	if c.Truth != "" {
		f, err := os.Create(c.Truth)
		if err != nil {
			return input(fmt.Errorf("--truth %s: %w", c.Truth, regular.WithoutPath(err)), "")
		}
		defer f.Close() // Close of the server tells of lost lines
		settings.Truth = f
	}
	srv, err := emulator.Start(context.WithoutCancel(ctx), entry.Emulator, settings)
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return input(err, "choose another --listen address")
	case err != nil:
		return usage(err, "see sttbench emulate --help")
	}
	if err := c.writeCertificate(srv); err != nil {
		return errors.Join(err, srv.Close())
	}
	if _, err := fmt.Fprintf(a.stdout, "listening %s\n", srv.URL()); err != nil {
		return errors.Join(a.stdout.failure(), srv.Close())
	}
	<-ctx.Done() // being stopped is how this command ends
	return srv.Close()
}

// writeCertificate makes sure that the file is complete before "listening" is said.
func (c *emulateCmd) writeCertificate(srv *emulator.Server) error {
	if c.Certificate == "" {
		return nil
	}
	if err := os.WriteFile(c.Certificate, srv.CertPEM(), 0o644); err != nil {
		return input(fmt.Errorf("--certificate %s: %w", c.Certificate, regular.WithoutPath(err)), "")
	}
	return nil
}

func (c *emulateCmd) settings() (emulator.Settings, error) {
	s := emulator.Settings{Listen: c.Listen, PartialLag: c.PartialLag, WordErrorRate: c.WordErrorRate, Seed: c.Seed, TLS: c.TLS}
	wrong := func(flag string, err error) (emulator.Settings, error) {
		return s, usage(fmt.Errorf("%s: %w", flag, err), "see sttbench emulate --help")
	}
	if c.Certificate != "" && !c.TLS {
		return s, usage(errors.New("--certificate: there is none without --tls"), "add --tls")
	}
	var err error
	if s.FinalDelay, err = emulator.ParseDelay(c.FinalDelay); err != nil {
		return wrong("--final-delay", err)
	}
	for _, text := range c.Fault {
		f, err := emulator.ParseFault(text)
		if err != nil {
			return wrong("--fault", err)
		}
		s.Faults = append(s.Faults, f)
	}
	if c.Script != "" {
		if err := s.LoadScript(c.Script); err != nil {
			return s, input(fmt.Errorf("--script: %w", err), "see sttbench emulate --help")
		}
	}
	return s, nil
}

// lookupProvider finds a provider that the command line named.
func lookupProvider(name string) (catalogue.Entry, error) {
	entry, err := catalogue.Lookup(name)
	if err != nil {
		return entry, usage(err, "sttbench providers describes them")
	}
	return entry, nil
}
