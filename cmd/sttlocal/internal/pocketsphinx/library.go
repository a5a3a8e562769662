// Package pocketsphinx binds the few functions of CMU PocketSphinx that a
// live recogniser needs.
//
// The library is opened at run time. Nothing here needs its headers or a
// linker, so the whole module builds, vets and tests on a machine without
// PocketSphinx, and a missing library is an ordinary error with a way out. It
// is opened through purego rather than through a C shim of ours: every
// signature is then one line of Go next to its use, and there is no C to keep.
//
// The binding is written for the API of "5prealpha", which is what Debian
// packages as libpocketsphinx3 (0.8+5prealpha). PocketSphinx 5 renamed how a
// decoder is configured; [Open] refuses it by name instead of guessing.
//
// PocketSphinx calls exit on some bad model files. [FindModel] therefore looks
// at every file before the library is given its name.
package pocketsphinx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebitengine/purego"
)

// ErrNotFound is wrapped by every error that says that the shared library or
// the model is not on this machine.
var ErrNotFound = errors.New("pocketsphinx is not installed")

// libraryNames are tried in order. The first is Debian's soname, which the
// loader finds in its usual places; the others are for libraries that were
// built by hand.
var libraryNames = []string{
	"libpocketsphinx.so.3",
	"/usr/local/lib/libpocketsphinx.so.3",
	"libpocketsphinx.3.dylib",
	"/opt/homebrew/lib/libpocketsphinx.3.dylib",
	"/usr/local/lib/libpocketsphinx.3.dylib",
}

// Library is the opened shared library. It is never closed: decoders may
// outlive any one user of it.
type Library struct {
	args       func() uintptr
	parseArgs  func(inout, defn uintptr, argc int32, argv **byte, strict int32) uintptr
	freeConfig func(config uintptr) int32
	setLog     func(file uintptr)
	expLog     func(logmath uintptr, p int32) float64

	initDecoder func(config uintptr) uintptr
	free        func(ps uintptr) int32
	logmath     func(ps uintptr) uintptr
	startStream func(ps uintptr) int32
	startUtt    func(ps uintptr) int32
	processRaw  func(ps uintptr, samples *int16, n uintptr, noSearch, fullUtt int32) int32
	endUtt      func(ps uintptr) int32
	hypothesis  func(ps uintptr, score *int32) string

	segIter   func(ps uintptr) uintptr
	segNext   func(seg uintptr) uintptr
	segWord   func(seg uintptr) string
	segFrames func(seg uintptr, start, end *int32)
	segProb   func(seg uintptr, acoustic, language, backoff *int32) int32
}

// Open loads the shared library from where its packages put it and silences
// its log. The error wraps [ErrNotFound] when there is no usable library.
func Open() (*Library, error) {
	for _, name := range libraryNames {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return bind(name, handle)
		}
	}
	return nil, fmt.Errorf("%w: no shared library (looked for %s)", ErrNotFound, strings.Join(libraryNames, ", "))
}

// bind resolves every function, so that an unsuitable library is refused here
// and not in the middle of a session.
func bind(name string, handle uintptr) (*Library, error) {
	var l Library
	for _, f := range []struct {
		symbol string
		target any
	}{
		{"ps_args", &l.args},
		{"cmd_ln_parse_r", &l.parseArgs},
		{"cmd_ln_free_r", &l.freeConfig},
		{"err_set_logfp", &l.setLog},
		{"logmath_exp", &l.expLog},
		{"ps_init", &l.initDecoder},
		{"ps_free", &l.free},
		{"ps_get_logmath", &l.logmath},
		{"ps_start_stream", &l.startStream},
		{"ps_start_utt", &l.startUtt},
		{"ps_process_raw", &l.processRaw},
		{"ps_end_utt", &l.endUtt},
		{"ps_get_hyp", &l.hypothesis},
		{"ps_seg_iter", &l.segIter},
		{"ps_seg_next", &l.segNext},
		{"ps_seg_word", &l.segWord},
		{"ps_seg_frames", &l.segFrames},
		{"ps_seg_prob", &l.segProb},
	} {
		addr, err := purego.Dlsym(handle, f.symbol)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has no function %s; version 5prealpha is needed", ErrNotFound, name, f.symbol)
		}
		purego.RegisterFunc(f.target, addr)
	}
	l.setLog(0)
	return &l, nil
}
