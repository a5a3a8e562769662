// Sttbench measures how fast and how right streaming speech-to-text providers
// are after the user stops talking.
//
// Results go to standard output, everything said to people while they wait to
// standard error. It exits with 0 when it did what was asked, 1 when a
// measurement failed, 2 for wrong usage, 3 when a configuration or an input file
// cannot be used, and 4 when this machine was too slow for a valid measurement.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line. Each command is a file of its own, whose type
// has a method Run(context.Context, *app) error.
type commands struct {
	Probe     probeCmd     `cmd:"" help:"Stream one audio file to one provider and time its answer."`
	Run       runCmd       `cmd:"" help:"Stream datasets to several targets and compare them."`
	Replay    replayCmd    `cmd:"" help:"Compute the results of a run directory again, without streaming."`
	Report    reportCmd    `cmd:"" help:"Print the results of a run directory."`
	VAD       vadCmd       `cmd:"" name:"vad" help:"Show where speech begins and ends in audio files."`
	Score     scoreCmd     `cmd:"" help:"Compute word error rates of transcripts."`
	Normalize normalizeCmd `cmd:"" help:"Normalize text as it is before a word error rate is computed."`
	Emulate   emulateCmd   `cmd:"" help:"Play a provider on this machine, for tests without a network or a key."`
	Calibrate calibrateCmd `cmd:"" help:"Measure the error of our own times on this machine, against an emulator that knows the truth."`
	Providers providersCmd `cmd:"" help:"List the providers: capabilities, models, prices, key variables."`
	Version   versionCmd   `cmd:"" help:"Print the version and where the voice activity detector was found."`
}

const description = `Measure streaming speech-to-text providers: how long after the end of speech the text is there, and how right it is.

API keys are read from environment variables; "sttbench providers" names them.`

func main() {
	log.SetOutput(io.Discard) // a FLAC decoder we use writes to the standard logger
	os.Exit(run(interruptible(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first Ctrl-C or SIGTERM ends. A
// second one kills the process, as if it had never been caught.
func interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel(errInterrupted)
	}()
	return ctx
}

// run is the whole program but for the process around it; it returns the exit
// code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newApp(stdin, stdout, stderr).run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	err := a.execute(ctx, args)
	if err == nil {
		err = a.stdout.failure()
	}
	return a.report(ctx, err)
}

// execute parses the command line and runs the command.
func (a *app) execute(ctx context.Context, args []string) error {
	helped := false
	parser, err := kong.New(new(commands),
		kong.Name("sttbench"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(a),
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if helped {
		return nil
	}
	if err != nil {
		return usage(err, helpFor(err))
	}
	return parsed.Run()
}

// helpFor points to the help text of the command that was used wrongly.
func helpFor(err error) string {
	var parse *kong.ParseError
	command := "sttbench"
	if errors.As(err, &parse) {
		if node := parse.Context.Selected(); node != nil {
			command += " " + node.Name
		}
	}
	return "see " + command + " --help"
}

// softwareVersion is what the build knows about itself.
func softwareVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// platform names the Go version and the system.
func platform() string { return runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH }
