package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"sttbench/corpus"
	"sttbench/providers"
	"sttbench/vad"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"sttbench": main})
}

// leakChecked runs the tests with a cache folder of their own and fails if they
// leave goroutines behind.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	dir, err := os.MkdirTemp("", "sttbench-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_CACHE_HOME", dir)
	// Sessions last as long as their audio and mostly wait. A flag given to go test
	// still wins: it is parsed later.
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// speechDir is where Debian's package pocketsphinx-testdata puts recordings.
const speechDir = "/usr/share/pocketsphinx/test/data/cards"

// speechMissing says what the tests with real speech lack, nil if nothing.
func speechMissing() error {
	if _, err := vad.Locate("", ""); err != nil {
		return err
	}
	if _, err := os.Stat(speechDir); err != nil {
		return fmt.Errorf("%w: run make deps", err)
	}
	return nil
}

func depsRequired() bool { return os.Getenv("STTBENCH_REQUIRE_DEPS") == "1" }

// needSpeech skips a test that lacks the detector or the recordings, with the
// reason, or fails it where they are required.
func needSpeech(t *testing.T) {
	t.Helper()
	if err := speechMissing(); err != nil {
		if depsRequired() {
			t.Fatalf("STTBENCH_REQUIRE_DEPS is set, but %v", err)
		}
		t.Skipf("skipped: %v", err)
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			if err := speechMissing(); err != nil {
				t.Logf("scripts that need speech are skipped: %v", err)
			} else if paths, err := vad.Locate("", ""); err == nil {
				env.Setenv(vad.EnvLibrary, paths.Library)
				env.Setenv(vad.EnvModel, paths.Model)
			}
			for name, pcm := range recordings() {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), wav(pcm), 0o644); err != nil {
					return err
				}
			}
			env.Setenv("SPEECH", speechDir)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CACHE_HOME", os.Getenv("XDG_CACHE_HOME"))
			env.Setenv("NO_COLOR", "")
			env.Setenv("TERM", "xterm")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "speech" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			err := speechMissing()
			if err != nil && depsRequired() {
				return false, fmt.Errorf("STTBENCH_REQUIRE_DEPS is set, but %w", err)
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "emulator": startEmulator, "stop": stopEmulator,
		},
	})
}

// recordings are the files of the scripts that are not in their archives: 16 bit
// PCM at 16 kHz. two.wav says "ten of clubs" twice, where there is speech.
func recordings() map[string][]byte {
	files := map[string][]byte{"silence.wav": make([]byte, 16000)}
	if audio, err := corpus.Decode(speech); err == nil {
		pcm := audio.PCM16LE()
		files["two.wav"] = slices.Concat(pcm, make([]byte, 48000), pcm)
	}
	return files
}

// wav puts a header before PCM of 16 bit, mono, 16 kHz.
func wav(pcm []byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), uint32(36+len(pcm)))
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = le.AppendUint16(le.AppendUint16(b, 1), 1)
	b = le.AppendUint32(le.AppendUint32(b, 16000), 32000)
	b = le.AppendUint16(le.AppendUint16(b, 2), 16)
	b = le.AppendUint32(append(b, "data"...), uint32(len(pcm)))
	return append(b, pcm...)
}

// attempts is how often a measurement is made again that this machine spoiled.
const attempts = 6

// exits CODE [<FILE] COMMAND ARG… runs a command, requires its exit code, and
// puts what it printed into the files out and err.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE [<FILE] COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	stdin := ""
	if file, ok := strings.CutPrefix(args[0], "<"); ok {
		stdin, args = ts.ReadFile(file), args[1:]
	}
	var code int
	for range attempts {
		var stdout, stderr strings.Builder
		cmd := command(ts, args)
		stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
		err := cmd.Run()
		stuck.Stop()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			ts.Check(err)
		}
		code = cmd.ProcessState.ExitCode()
		ts.Logf("[exit %d]\n[stdout]\n%s[stderr]\n%s", code, &stdout, &stderr)
		ts.Check(os.WriteFile(ts.MkAbs("out"), []byte(stdout.String()), 0o644))
		ts.Check(os.WriteFile(ts.MkAbs("err"), []byte(stderr.String()), 0o644))
		if code == want || code != exitClientInvalid {
			break
		}
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// command runs in the script's folder and environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "NO_COLOR", "TERM",
		vad.EnvLibrary, vad.EnvModel, "DEEPGRAM_API_KEY", "OPENAI_API_KEY"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}

// emulations are the running emulators of all scripts, by path of the script's
// folder and name.
var emulations sync.Map

// emulation is a running sttbench emulate.
type emulation struct {
	cmd     *exec.Cmd
	stopped bool
}

func (e *emulation) stop() error {
	if e.stopped {
		return nil
	}
	e.stopped = true
	if err := e.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return e.cmd.Wait()
}

// emulator NAME ARG… starts sttbench emulate ARG… and puts its URL into the
// variable NAME. It is stopped at the end of the script, which must be graceful.
func startEmulator(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: emulator NAME PROVIDER [ARG…]")
	}
	cmd := command(ts, append([]string{"sttbench", "emulate"}, args[1:]...))
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	e := &emulation{cmd: cmd}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(line, "listening ")
	if !ok {
		_ = cmd.Process.Kill()
		ts.Fatalf("emulator printed %q", line)
	}
	ts.Setenv(args[0], strings.TrimSpace(url))
	emulations.Store(ts.MkAbs(args[0]), e)
	ts.Defer(func() { ts.Check(e.stop()) })
}

// stop NAME stops an emulator.
func stopEmulator(ts *testscript.TestScript, _ bool, args []string) {
	e, ok := emulations.Load(ts.MkAbs(args[0]))
	if !ok {
		ts.Fatalf("no emulator %s", args[0])
	}
	ts.Check(e.(*emulation).stop())
}

func TestWriteErrors(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"providers"}, {"providers", "--json"}, {"score", "--profiles"}, {"normalize", "--profile=plain"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stderr strings.Builder
			if code := run(t.Context(), args, strings.NewReader("hello\n"), fullDisk{}, &stderr); code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			if got, want := stderr.String(), "disk full\n"; !strings.HasSuffix(got, want) {
				t.Errorf("stderr %q, want it to end in %q", got, want)
			}
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRedact(t *testing.T) {
	var out strings.Builder
	a := newApp(nil, &out, io.Discard)
	for _, key := range []string{`first-"key"-of-two`, "second-key-of-two", "test", ""} {
		a.hide(providers.NewSecret(key))
	}
	fmt.Fprintln(a.stdout, `first-"key"-of-two, second-key-of-two, a test`)
	if err := a.stdout.json(`first-"key"-of-two`); err != nil {
		t.Fatal(err)
	}
	if want := "[secret], [secret], a test\n\"[secret]\"\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// TestBlockedInput checks that Ctrl-C ends a command that waits for input.
func TestBlockedInput(t *testing.T) {
	for _, name := range []string{"normalize", "score"} {
		t.Run(name, func(t *testing.T) {
			in, keyboard := io.Pipe()
			defer keyboard.Close() // lets the reading goroutine go
			ctx, cancel := context.WithCancelCause(t.Context())
			stdout := writerFunc(func([]byte) { cancel(errInterrupted) })
			go keyboard.Write([]byte(`{"id":"1","ref":"a","hyp":"a"}` + "\n"))
			var stderr strings.Builder
			code := run(ctx, []string{name, "--profile", "plain"}, in, stdout, &stderr)
			if want := "sttbench: interrupted\n"; code != exitFailed || stderr.String() != want {
				t.Errorf("exit code %d, stderr %q, want %d, %q", code, &stderr, exitFailed, want)
			}
		})
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
