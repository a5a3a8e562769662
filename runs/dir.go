package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sttbench/record"
	"sttbench/regular"
	"sttbench/strictyaml"
)

// The files of a run directory.
const (
	configFile    = "config.yaml"
	itemsFile     = "manifest.jsonl"
	turnsFile     = "turns.jsonl"
	sessionsDir   = "sessions"
	outcomesFile  = "outcomes.jsonl"
	scoresFile    = "scores.jsonl"
	aggregateFile = "aggregate.json"
	lockFile      = ".lock"
	tempPrefix    = ".tmp-"

	maxLines = 1 << 30 // bytes of one of these files
)

// DirError says that a run directory cannot be used as asked.
type DirError struct {
	Dir  string
	Err  error
	Hint string
}

func (e *DirError) Error() string { return e.Dir + ": " + e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// dir is an open run directory.
type dir struct {
	path string
	lock *os.File
}

// turnsLine is one line of turns.jsonl.
type turnsLine struct {
	Item string `json:"item"`
	record.Turns
}

// create makes a new run directory, or opens an existing one to go on with.
func create(path string, cfg *Config, resume bool) (*dir, error) {
	want, err := cfg.yaml()
	if err != nil {
		return nil, err
	}
	have, err := regular.ReadFile(filepath.Join(path, configFile), strictyaml.MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if entries, _ := os.ReadDir(path); resume && len(entries) > 0 {
			return nil, &DirError{path, errors.New("is no run directory: it has no " + configFile), ""}
		} else if !resume && len(entries) > 0 {
			return nil, &DirError{path, errors.New("directory is not empty"), "choose another --out"}
		}
	case err != nil:
		return nil, &DirError{path, err, ""}
	case !resume:
		return nil, &DirError{path, errors.New("a run is there already"), "go on with it by --resume, or choose another --out"}
	case !bytes.Equal(have, want):
		return nil, &DirError{path, errors.New("the run there has another configuration: " + firstDifference(have, want)),
			"resume with the configuration it was started with, or choose another --out"}
	}
	if err := os.MkdirAll(filepath.Join(path, sessionsDir), 0o755); err != nil {
		return nil, &DirError{path, err, ""}
	}
	d := &dir{path: path}
	if err := d.acquire(); err != nil {
		return nil, err
	}
	if err := d.sweep(); err != nil {
		d.close()
		return nil, err
	}
	if have == nil {
		if err := d.write(configFile, func(w io.Writer) error { _, err := w.Write(want); return err }); err != nil {
			d.close()
			return nil, err
		}
	}
	return d, nil
}

// open opens a run directory to compute from.
func open(path string) (*dir, *Config, error) {
	name := filepath.Join(path, configFile)
	data, err := regular.ReadFile(name, strictyaml.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &DirError{path, errors.New("is no run directory: it has no " + configFile), ""}
	}
	if err != nil {
		return nil, nil, &DirError{path, err, ""}
	}
	cfg := defaults(name)
	if err := strictyaml.Decode(name, data, &cfg); err != nil {
		return nil, nil, &configError{err}
	}
	if err := cfg.check(); err != nil {
		return nil, nil, &configError{fmt.Errorf("%s: %w", name, err)}
	}
	d := &dir{path: path}
	return d, &cfg, d.acquire()
}

func firstDifference(have, want []byte) string {
	a, b := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = strings.TrimSpace(a[i])
		}
		if i < len(b) {
			y = strings.TrimSpace(b[i])
		}
		if x != y {
			return fmt.Sprintf("%q there, %q now", x, y)
		}
	}
	return "no line differs"
}

// sweep removes the half-written files of a run that was killed.
func (d *dir) sweep() error {
	err := filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasPrefix(e.Name(), tempPrefix) {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		return &DirError{d.path, err, ""}
	}
	return nil
}

func (d *dir) close() {
	if d.lock != nil {
		d.lock.Close() // gives the lock up
	}
}

// write makes a file whole or not at all: a reader never sees half of it, and a
// full disk leaves what was there.
func (d *dir) write(name string, fill func(io.Writer) error) error {
	path := filepath.Join(d.path, name)
	tmp, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return &DirError{d.path, err, ""}
	}
	err = fill(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return &DirError{d.path, fmt.Errorf("write %s: %w", name, err), ""}
	}
	return nil
}

func sessionFile(target, item string, repeat int) string {
	return filepath.Join(sessionsDir, target, fmt.Sprintf("%s.%d.jsonl", item, repeat))
}

// has tells whether a session was recorded; files appear only when complete.
func (d *dir) has(target, item string, repeat int) bool {
	_, err := os.Stat(filepath.Join(d.path, sessionFile(target, item, repeat)))
	return err == nil
}

func (d *dir) putSession(s *record.Session) error {
	name := sessionFile(s.Open.Target.Name, s.Open.Item.ID, s.Open.Repeat)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(d.path, name)), 0o755); err != nil {
		return &DirError{d.path, err, ""}
	}
	return d.write(name, func(w io.Writer) error { return record.Write(w, s) })
}

// session reads a recorded session; nil when there is none.
func (d *dir) session(target, item string, repeat int) (*record.Session, error) {
	name := sessionFile(target, item, repeat)
	f, _, err := regular.Open(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &DirError{d.path, fmt.Errorf("%s: %w", name, err), ""}
	}
	defer f.Close()
	s, err := record.Read(f)
	if err != nil {
		return nil, &DirError{d.path, fmt.Errorf("%s: %w", name, err), "remove the file and resume the run to measure the session again"}
	}
	return s, nil
}

// sameItems refuses to go on with a run whose items have changed: sessions with
// the old and the new audio must not stand under one name.
func (d *dir) sameItems(items []record.Item) error {
	if _, err := os.Stat(filepath.Join(d.path, itemsFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	had, err := lines[record.Item](d, itemsFile)
	if err != nil {
		return err
	}
	hint := "restore the dataset, or choose another --out"
	if len(had) != len(items) {
		return &DirError{d.path, fmt.Errorf("the run there has %d items, the datasets now have %d", len(had), len(items)), hint}
	}
	for i := range had {
		// Compared as they are stored: an absent list and an empty one are the same.
		a, aerr := json.Marshal(had[i])
		b, berr := json.Marshal(items[i])
		if err := errors.Join(aerr, berr); err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return &DirError{d.path, fmt.Errorf("item %s is not what the run was started with", items[i].ID), hint}
		}
	}
	return nil
}

// sameTurns refuses to go on with a run whose turns were found otherwise, by another
// model or other settings: its sessions would be judged by two measures.
func (d *dir) sameTurns(turns []turnsLine) error {
	if _, err := os.Stat(filepath.Join(d.path, turnsFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	had, err := lines[turnsLine](d, turnsFile)
	if err != nil {
		return err
	}
	same := slices.EqualFunc(had, turns, func(a, b turnsLine) bool {
		return a.Item == b.Item && a.Model == b.Model && a.Params == b.Params && slices.Equal(a.List, b.List)
	})
	if !same {
		return &DirError{d.path, errors.New("the VAD now finds other turns than the run was started with"),
			"use the VAD model that the run was started with, or choose another --out"}
	}
	return nil
}

// putLines writes one JSON document per line.
func putLines[T any](d *dir, name string, lines []T) error {
	return d.write(name, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, l := range lines {
			if err := enc.Encode(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// lines reads what putLines wrote.
func lines[T any](d *dir, name string) ([]T, error) {
	data, err := regular.ReadFile(filepath.Join(d.path, name), maxLines)
	if err != nil {
		return nil, &DirError{d.path, fmt.Errorf("%s: %w", name, err), ""}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var all []T
	for {
		var l T
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, &DirError{d.path, fmt.Errorf("%s: %w", name, err), ""}
		}
		all = append(all, l)
	}
}
