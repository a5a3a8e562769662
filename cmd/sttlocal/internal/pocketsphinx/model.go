package pocketsphinx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Model names the three parts of a PocketSphinx model.
type Model struct {
	Acoustic   string // folder with the acoustic model
	Language   string // n-gram language model, binary
	Dictionary string // pronunciations
}

// modelDirs are where packages put the en-us model: Debian, a build of the
// source with the default prefix, Homebrew.
var modelDirs = []string{
	"/usr/share/pocketsphinx/model/en-us",
	"/usr/local/share/pocketsphinx/model/en-us",
	"/opt/homebrew/share/pocketsphinx/model/en-us",
}

// FindModel returns the en-us model in dir, or in the first folder known to
// packages when dir is empty. It checks that every file the library would
// open is there. The error wraps [ErrNotFound].
func FindModel(dir string) (Model, error) {
	dirs := modelDirs
	if dir != "" {
		dirs = []string{dir}
	}
	var missing string
	for _, d := range dirs {
		m := Model{
			Acoustic:   filepath.Join(d, "en-us"),
			Language:   filepath.Join(d, "en-us.lm.bin"),
			Dictionary: filepath.Join(d, "cmudict-en-us.dict"),
		}
		if missing = m.missing(); missing == "" {
			return m, nil
		}
	}
	if dir != "" {
		return Model{}, fmt.Errorf("%w: no en-us model in %s: %s is missing or empty", ErrNotFound, dir, missing)
	}
	return Model{}, fmt.Errorf("%w: no en-us model (looked in %s)", ErrNotFound, strings.Join(dirs, ", "))
}

// missing returns the first file of the model that is not there, or "".
func (m Model) missing() string {
	files := []string{m.Language, m.Dictionary}
	for _, name := range []string{"feat.params", "mdef", "means", "noisedict", "sendump", "transition_matrices", "variances"} {
		files = append(files, filepath.Join(m.Acoustic, name))
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return file
		}
	}
	return ""
}
