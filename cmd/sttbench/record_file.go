package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sttbench/record"
	"sttbench/regular"
)

// recordFile is a session record that appears under its name when it is
// complete, or not at all.
type recordFile struct {
	path string
	tmp  *os.File // nil when the file was committed or discarded
}

// createRecord finds out, before anything is measured, whether the record can be
// written.
func createRecord(path string) (*recordFile, error) {
	fail := func(err error) (*recordFile, error) {
		return nil, input(fmt.Errorf("--record %s: %w", path, regular.WithoutPath(err)), "")
	}
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = path
	case err != nil:
		return fail(err)
	}
	// A device or a pipe would be replaced, not written to.
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		return fail(errors.New("is not a regular file"))
	}
	tmp, err := os.CreateTemp(filepath.Dir(target), ".sttbench-*")
	if err != nil {
		return fail(err)
	}
	return &recordFile{path: target, tmp: tmp}, nil
}

// commit writes the record and gives the file its name.
func (f *recordFile) commit(s *record.Session) error {
	defer f.discard()
	err := record.Write(f.tmp, s)
	if err == nil {
		err = f.tmp.Chmod(0o644)
	}
	if err == nil {
		err = f.tmp.Sync()
	}
	if err == nil {
		err = f.tmp.Close()
	}
	if err == nil {
		err = os.Rename(f.tmp.Name(), f.path)
	}
	if err != nil {
		return input(fmt.Errorf("--record %s: %w", f.path, regular.WithoutPath(err)), "")
	}
	f.tmp = nil
	return nil
}

// discard removes an uncommitted file.
func (f *recordFile) discard() {
	if f.tmp != nil {
		f.tmp.Close()
		os.Remove(f.tmp.Name())
		f.tmp = nil
	}
}
