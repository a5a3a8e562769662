//go:build unix

package runs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// acquire takes the directory for this process until close. The kernel gives the
// lock up when the process dies, so a killed run never blocks its own resumption.
func (d *dir) acquire() error {
	f, err := os.OpenFile(filepath.Join(d.path, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return &DirError{d.path, err, ""}
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return &DirError{d.path, errors.New("another sttbench works in this directory"), "wait for it to end"}
		}
		return &DirError{d.path, err, ""}
	}
	d.lock = f
	return nil
}
