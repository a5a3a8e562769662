package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"sttbench/calibrate"
)

// calibrateOnce carries out a plan with an emulator and an echo of its own, both
// this same program in other processes.
func calibrateOnce(ctx context.Context, p calibrate.Plan, secure bool) (*calibrate.Report, error) {
	runtime.LockOSThread() // for endWithUs
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "sttbench-calibrate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	script, truth, cert := filepath.Join(dir, "script.json"), filepath.Join(dir, "truth.jsonl"), filepath.Join(dir, "cert.pem")
	if err := os.WriteFile(script, p.Script(), 0o600); err != nil {
		return nil, err
	}
	args := []string{"emulate", "deepgram", "--listen=127.0.0.1:0", "--final-delay=" + calibrate.FinalDelay, "--script=" + script, "--truth=" + truth}
	if secure {
		args = append(args, "--tls", "--certificate="+cert)
	}
	emulator, err := startChild(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	defer emulator.stop()
	echo, err := startChild(ctx, "calibrate", "--echo")
	if err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	defer echo.stop()

	bench := calibrate.Bench{Emulator: emulator.address, Echo: echo.address}
	if secure {
		if bench.TLS, err = trusting(cert); err != nil {
			return nil, err
		}
	}
	run, err := bench.Run(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := emulator.stop(); err != nil { // completes the truth log
		return nil, fmt.Errorf("emulator: %w", err)
	}
	f, err := os.Open(truth)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	forces, err := calibrate.ReadForces(f)
	if err != nil {
		return nil, err
	}
	return calibrate.Evaluate(run, forces), nil
}

// trusting is the configuration of a client that trusts one certificate only.
func trusting(path string) (*tls.Config, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the emulator wrote no certificate")
	}
	return &tls.Config{RootCAs: pool}, nil
}

// child is this program in another process, one that says where it listens. It
// ends with the context it was started with.
type child struct {
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	address string
	stderr  bytes.Buffer
	stopped bool
}

// childEnd is how long a child may take to end when it is asked to.
const childEnd = 10 * time.Second

func startChild(ctx context.Context, args ...string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	outer := ctx
	ctx, cancel := context.WithCancel(outer)
	c := &child{cmd: exec.CommandContext(ctx, program, args...), cancel: cancel}
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(os.Interrupt) }
	c.cmd.WaitDelay = childEnd
	c.cmd.Stderr = &c.stderr
	endWithUs(c.cmd)
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if !ok {
		err := errors.Join(c.stop(), errors.New("it did not start"))
		if stopped := outer.Err(); stopped != nil { // that is why
			err = stopped
		}
		return nil, err
	}
	c.address = address
	return c, nil
}

// stop ends the child and waits for it. It may be called again.
func (c *child) stop() error {
	if c.stopped {
		return nil
	}
	c.stopped = true
	c.cancel()
	err := c.cmd.Wait()
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(c.stderr.String()+" ("+err.Error()+")"), "sttbench: "))
}
