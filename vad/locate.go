package vad

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Environment variables that name the files, used when no explicit path is given.
const (
	EnvLibrary = "STTBENCH_ONNXRUNTIME"
	EnvModel   = "STTBENCH_VAD_MODEL"
)

// Paths are the files that [Open] needs, as absolute paths.
type Paths struct {
	Library string // ONNX Runtime's shared library
	Model   string // silero_vad.onnx
}

// MissingError says that a file was found in none of the places searched. It is
// not used for a path that was named explicitly.
type MissingError struct {
	What   string   // "onnx runtime" or "vad model"
	Looked []string // the paths tried, in order
	Env    string   // the environment variable that names the file
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found (looked for %s): run `make deps` or set %s",
		e.What, strings.Join(e.Looked, ", "), e.Env)
}

// Locate finds the shared library and the model. Each is taken from the first
// that is set of: the explicit argument, and the environment variable
// [EnvLibrary] or [EnvModel]. A path set so that is not a file is an error;
// nothing else is tried. With neither set, Locate searches
//
//   - relative to the folder of the executable, symbolic links resolved:
//     ../third_party/lib, ../lib and the folder itself for the library,
//     ../third_party/models, ../models and the folder itself for the model,
//   - third_party/lib and third_party/models of sttbench's source tree, if the
//     working directory lies inside it (which serves go test and go run).
//
// If a file is found nowhere the error is a [*MissingError]. Locate only looks;
// whether the files are usable is found out by [Open].
func Locate(explicitLibrary, explicitModel string) (Paths, error) {
	p := places{env: os.Getenv}
	// A place that the system cannot name is a place not searched.
	if exe, err := os.Executable(); err == nil {
		if exe, err = filepath.EvalSymlinks(exe); err == nil {
			p.exeDir = filepath.Dir(exe)
		}
	}
	if wd, err := os.Getwd(); err == nil {
		p.sourceTree = sourceTree(wd)
	}
	library, err := p.find("onnx runtime", explicitLibrary, EnvLibrary, "lib", libraryName(runtime.GOOS))
	if err != nil {
		return Paths{}, err
	}
	model, err := p.find("vad model", explicitModel, EnvModel, "models", "silero_vad.onnx")
	if err != nil {
		return Paths{}, err
	}
	return Paths{Library: library, Model: model}, nil
}

func libraryName(goos string) string {
	if goos == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}

// places are the surroundings in which files are searched.
type places struct {
	env        func(string) string
	exeDir     string // "" if unknown
	sourceTree string // "" outside of it
}

func (p places) find(what, explicit, env, folder, name string) (string, error) {
	if explicit != "" {
		return explicitFile(what, explicit, "")
	}
	if path := p.env(env); path != "" {
		return explicitFile(what, path, " (from "+env+")")
	}
	var looked []string
	if p.exeDir != "" {
		looked = append(looked,
			filepath.Join(p.exeDir, "..", "third_party", folder, name),
			filepath.Join(p.exeDir, "..", folder, name),
			filepath.Join(p.exeDir, name))
	}
	if p.sourceTree != "" {
		if path := filepath.Join(p.sourceTree, "third_party", folder, name); !slices.Contains(looked, path) {
			looked = append(looked, path)
		}
	}
	for _, path := range looked {
		if isFile(path) == nil {
			return path, nil
		}
	}
	return "", &MissingError{What: what, Looked: looked, Env: env}
}

// explicitFile returns the absolute form of a path that somebody named. The
// dynamic loader would search a bare name in the system's folders instead.
func explicitFile(what, path, from string) (string, error) {
	if err := isFile(path); err != nil {
		return "", fmt.Errorf("%s %s%s: %w", what, path, from, err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s %s%s: %w", what, path, from, err)
	}
	return abs, nil
}

// isFile returns why the path is not a regular file, without repeating the path.
func isFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
			return pathErr.Err
		}
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}

// sourceTree walks up from dir to the root of the module sttbench.
func sourceTree(dir string) string {
	for {
		if isModule(filepath.Join(dir, "go.mod"), "sttbench") {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func isModule(goMod, name string) bool {
	if isFile(goMod) != nil {
		return false
	}
	f, err := os.Open(goMod)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`) == name
		}
	}
	return false
}
