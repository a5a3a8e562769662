// Sttlocal is a speech recogniser on this machine that speaks the WebSocket
// protocol of the Vosk server, so that a benchmark has a real engine to
// measure without a network, a key or a bill.
//
// The engine is PocketSphinx with its en-us model: small, fast and often
// wrong. Its latencies are real; its word error rate says nothing about any
// vendor.
//
// Sttlocal prints "listening ws://ADDRESS" on standard output once the model
// is loaded, and everything else on standard error. It exits with 0 after a
// signal, 1 when serving failed, 2 for wrong usage and 3 when the library, the
// model or the address cannot be used.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"sttbench/cmd/sttlocal/internal/pocketsphinx"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitConfig = 3
)

// decoderSettings trade accuracy for speed: one pass over the audio with
// narrow beams keeps the search well below real time on one core and the final
// pass below some tens of milliseconds. The library's own silence and noise
// removal are off because they move word times and carry state from one
// connection to the next; the endpointer does that work.
var decoderSettings = []string{
	"-fwdflat", "no",
	"-maxhmmpf", "3000",
	"-maxwpf", "10",
	"-remove_silence", "no",
	"-remove_noise", "no",
}

type flags struct {
	Listen      string           `default:"127.0.0.1:0" placeholder:"ADDR" help:"Address to listen on (${default}); port 0 takes a free one."`
	AllowRemote bool             `help:"Accept an address that other machines can reach. There is no authentication."`
	MaxSessions int              `default:"4" placeholder:"N" help:"Connections served at once (${default}); more get HTTP 503."`
	Model       string           `placeholder:"DIR" help:"Folder of the en-us model; without it, where packages install it."`
	Version     kong.VersionFlag `help:"Print the version and exit."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fail := func(code int, err error) int {
		fmt.Fprintln(stderr, "sttlocal:", err)
		return code
	}
	f, done, err := parse(args, stdout, stderr)
	if done {
		return exitOK
	}
	if err != nil {
		return fail(exitUsage, err)
	}
	addr, err := resolve(f.Listen, f.AllowRemote)
	if err != nil {
		return fail(exitUsage, err)
	}
	load, err := loader(f.Model)
	if err != nil {
		if errors.Is(err, pocketsphinx.ErrNotFound) {
			err = fmt.Errorf("%w: run make deps", err)
		}
		return fail(exitConfig, err)
	}
	srv := newServer(load, f.MaxSessions, log.New(stderr, "sttlocal: ", 0))
	if err := srv.warmUp(); err != nil {
		return fail(exitConfig, err)
	}
	defer srv.decoders.close()
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return fail(exitConfig, err)
	}
	fmt.Fprintf(stdout, "listening ws://%s\n", l.Addr())
	if err := srv.serve(ctx, l); err != nil {
		return fail(exitFailed, err)
	}
	return exitOK
}

// parse reads the command line. Done means that help or the version was
// printed and that nothing is left to do.
func parse(args []string, stdout, stderr io.Writer) (f flags, done bool, err error) {
	parser, err := kong.New(&f,
		kong.Name("sttlocal"),
		kong.Description("A local speech recogniser (PocketSphinx) that speaks the Vosk server protocol."),
		kong.Vars{"version": "sttlocal " + version()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { done = true }),
	)
	if err != nil {
		return f, false, err
	}
	_, err = parser.Parse(args)
	if err == nil && f.MaxSessions < 1 {
		err = fmt.Errorf("--max-sessions %d: at least 1 is needed", f.MaxSessions)
	}
	return f, done, err
}

// version is what the build knows about itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// resolve turns --listen into an address and refuses one that is not loopback
// unless the user allows it: a recogniser without authentication is for this
// machine only.
func resolve(listen string, allowRemote bool) (*net.TCPAddr, error) {
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", listen, err)
	}
	if !allowRemote && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen %s: other machines could reach this address; use 127.0.0.1 or add --allow-remote", listen)
	}
	return addr, nil
}

// loader finds the library and the model and returns the function that makes a
// new decoder from them.
func loader(modelDir string) (func() (decoder, error), error) {
	model, err := pocketsphinx.FindModel(modelDir)
	if err != nil {
		return nil, err
	}
	lib, err := pocketsphinx.Open()
	if err != nil {
		return nil, err
	}
	return func() (decoder, error) {
		d, err := lib.NewDecoder(model, decoderSettings...)
		if err != nil {
			return nil, err // not d: a nil *Decoder in an interface is not nil
		}
		return d, nil
	}, nil
}
