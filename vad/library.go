package vad

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// loaded mirrors what onnxruntime_go keeps for the whole process: one library,
// one environment. That package does not guard it, so this mutex does. The
// library is never unloaded: it would free little, and its threads and
// destructors make unloading a place where processes crash.
var loaded struct {
	sync.Mutex
	path string // symbolic links resolved; "" before the first success
}

// loadLibrary loads ONNX Runtime into the process. Loading the same file again
// does nothing; a failed load may be tried again with another file.
func loadLibrary(path string) error {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return fmt.Errorf("onnx runtime: %w", err)
	}
	loaded.Lock()
	defer loaded.Unlock()
	switch loaded.path {
	case path:
		return nil
	case "":
	default:
		return fmt.Errorf("onnx runtime %s: this process has already loaded %s, and it can hold one only", path, loaded.path)
	}
	if err := checkLibrary(path); err != nil {
		return unusable(path, err)
	}
	ort.SetSharedLibraryPath(path)
	if err := ort.InitializeEnvironment(); err != nil {
		return unusable(path, err)
	}
	loaded.path = path
	return nil
}

// minRuntime is the oldest ONNX Runtime that has the API version (24) which
// onnxruntime_go v1.27.0 asks for.
const minRuntime = "1.24"

func unusable(path string, err error) error {
	return fmt.Errorf("onnx runtime %s is not usable (%w): it must be ONNX Runtime %s or newer for %s/%s; run `make deps` or set %s",
		path, err, minRuntime, runtime.GOOS, runtime.GOARCH, EnvLibrary)
}

// checkLibrary keeps the dynamic loader from files that would kill the process:
// a truncated ELF file is mapped beyond its end and raises SIGBUS. Other formats
// are left to the loader.
func checkLibrary(path string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	lib, err := elf.NewFile(file)
	if err != nil {
		return fmt.Errorf("not a complete ELF file: %w", err)
	}
	for _, segment := range lib.Progs {
		if segment.Type == elf.PT_LOAD && segment.Off+segment.Filesz > uint64(info.Size()) {
			return fmt.Errorf("truncated ELF file of %d bytes", info.Size())
		}
	}
	symbols, err := lib.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("no dynamic symbols: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "OrtGetApiBase" && s.Section != elf.SHN_UNDEF {
			return nil
		}
	}
	return errors.New("it does not export OrtGetApiBase")
}
