//go:build unix

package corpus

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNamedPipe checks that a pipe nobody writes to does not block.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.wav")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Decode": func() error { _, err := Decode(path); return err },
		"Hash":   func() error { _, err := Item{Audio: path}.Hash(); return err },
		"Load":   func() error { _, err := Load(path); return err },
	}
	for name, call := range calls {
		done := make(chan error, 1)
		go func() { done <- call() }()
		select {
		case err := <-done:
			if err == nil || !strings.HasPrefix(err.Error(), path+": is not a regular file") {
				t.Errorf("%s: error is %v", name, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s hangs on a named pipe", name)
		}
	}
}
