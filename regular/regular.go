// Package regular opens files that people name on a command line or in a
// configuration. It takes regular files only: a directory, pipe or device given by
// mistake is an error at once, and not a program that hangs or fills the memory.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file for reading and returns its size in bytes. The errors do
// not name the file: callers have an error type that does.
func Open(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, WithoutPath(err)
	}
	switch {
	case info.IsDir():
		return nil, 0, errors.New("is a directory, not a file")
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("is not a regular file: copy the data to a file first")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, WithoutPath(err)
	}
	return f, info.Size(), nil
}

// ReadFile reads a regular file of at most max bytes. Errors are as those of Open;
// a file that does not exist matches [fs.ErrNotExist].
func ReadFile(path string, max int64) ([]byte, error) {
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > max {
		return nil, fmt.Errorf("has %d bytes: more than the %d MiB that are read", size, max>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, max))
	return data, WithoutPath(err)
}

// WithoutPath strips the operation and path that package os adds, for errors that
// name the file themselves.
func WithoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
