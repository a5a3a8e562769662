//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sttbench/endpoint"
	"sttbench/providers/deepgram"
	"sttbench/providers/emulator"
)

// A measuring process that the system does not run for a moment must not turn that
// into the provider's latency: the turn is client_invalid, with exit code 4. The same
// moment long before the turn's end does no harm.
func TestStarvedProcessIsCaught(t *testing.T) {
	needSpeech(t)
	recordings, err := filepath.Glob(filepath.Join(filepath.Dir(speechDir), "librivox", "*0890.wav"))
	if err != nil || len(recordings) != 1 {
		t.Fatalf("recording of 5 s beside %s: %v %v", speechDir, recordings, err)
	}
	srv, err := emulator.Start(t.Context(), deepgram.Emulator{}, emulator.Settings{FinalDelay: emulator.Delay{Base: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() }) // after the parallel subtests
	for _, c := range []struct {
		name  string
		after time.Duration // of the start of the process; it streams soon after
		want  endpoint.Class
		exit  int
	}{
		{"in the last second", 4700 * time.Millisecond, endpoint.ClientInvalid, exitClientInvalid},
		{"long before", 2 * time.Second, endpoint.OK, exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// A busy machine may spoil the good turn as well: that is what is measured.
			for try := 1; ; try++ {
				got, exit := starve(t, srv.URL(), recordings[0], c.after)
				if got == c.want && exit == c.exit {
					return
				}
				if try == 5 {
					t.Fatalf("outcome %s with exit code %d, want %s with %d", got, exit, c.want, c.exit)
				}
				t.Logf("try %d: outcome %s", try, got)
			}
		})
	}
}

// starve runs a probe and stops its process for 150 ms.
func starve(t *testing.T, url, audio string, after time.Duration) (endpoint.Class, int) {
	t.Helper()
	cmd := exec.Command("sttbench", "probe", "deepgram", "--endpoint", url, "--audio", audio, "--json")
	cmd.Env = append(os.Environ(), "DEEPGRAM_API_KEY=a-key-of-the-test")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(150 * time.Millisecond)
	_ = cmd.Process.Signal(syscall.SIGCONT)
	var doc struct {
		Outcome endpoint.Class `json:"outcome"`
	}
	if err := json.NewDecoder(out).Decode(&doc); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	return doc.Outcome, cmd.ProcessState.ExitCode()
}
