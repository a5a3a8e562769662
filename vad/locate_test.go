package vad

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes files (and folders, by a trailing slash) under a temporary folder.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		name, content, _ := strings.Cut(name, "=")
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			path = filepath.Join(path, "x")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	const lib = "libonnxruntime.so"
	tests := []struct {
		name     string
		files    []string
		explicit string
		env      string
		exeDir   string
		source   string
		want     string // without the folder
		err      string // with DIR for the folder
	}{
		{name: "beside third_party", files: []string{"third_party/lib/" + lib}, exeDir: "bin", want: "third_party/lib/" + lib},
		{name: "in ../lib", files: []string{"lib/" + lib}, exeDir: "bin", want: "lib/" + lib},
		{name: "in the same folder", files: []string{"bin/" + lib}, exeDir: "bin", want: "bin/" + lib},
		{name: "in the source tree", files: []string{"src/third_party/lib/" + lib}, exeDir: "bin", source: "src", want: "src/third_party/lib/" + lib},
		{name: "folders are passed over", files: []string{"third_party/lib/" + lib + "/", "lib/" + lib}, exeDir: "bin", want: "lib/" + lib},
		{name: "explicit comes first", files: []string{"a.so", "b.so", "lib/" + lib}, explicit: "a.so", env: "b.so", exeDir: "bin", want: "a.so"},
		{name: "environment comes next", files: []string{"b.so", "lib/" + lib}, env: "b.so", exeDir: "bin", want: "b.so"},
		{name: "explicit is not replaced", files: []string{"b.so", "lib/" + lib}, explicit: "a.so", env: "b.so", exeDir: "bin",
			err: "onnx runtime DIR/a.so: no such file or directory"},
		{name: "environment is not replaced", files: []string{"lib/" + lib}, env: "b.so", exeDir: "bin",
			err: "onnx runtime DIR/b.so (from STTBENCH_ONNXRUNTIME): no such file or directory"},
		{name: "explicit folder", files: []string{"a/"}, explicit: "a",
			err: "onnx runtime DIR/a: not a regular file"},
		{name: "missing", exeDir: "bin", source: "src",
			err: "onnx runtime not found (looked for DIR/third_party/lib/libonnxruntime.so, DIR/lib/libonnxruntime.so, " +
				"DIR/bin/libonnxruntime.so, DIR/src/third_party/lib/libonnxruntime.so): run `make deps` or set STTBENCH_ONNXRUNTIME"},
		{name: "binary in the source tree's bin", exeDir: "bin", source: ".",
			err: "onnx runtime not found (looked for DIR/third_party/lib/libonnxruntime.so, DIR/lib/libonnxruntime.so, " +
				"DIR/bin/libonnxruntime.so): run `make deps` or set STTBENCH_ONNXRUNTIME"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tree(t, test.files...)
			in := func(name string) string {
				if name == "" {
					return ""
				}
				return filepath.Join(dir, name)
			}
			p := places{
				env: func(name string) string {
					if name != EnvLibrary {
						t.Errorf("asked for %s", name)
					}
					return in(test.env)
				},
				exeDir: in(test.exeDir), sourceTree: in(test.source),
			}
			got, err := p.find("onnx runtime", in(test.explicit), EnvLibrary, "lib", lib)
			if want := in(test.want); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			text := ""
			if err != nil {
				text = strings.ReplaceAll(err.Error(), dir, "DIR")
			}
			if text != test.err {
				t.Errorf("error %q\nwant  %q", text, test.err)
			}
			var missing *MissingError
			if got, want := errors.As(err, &missing), strings.Contains(test.err, "make deps"); got != want {
				t.Errorf("is a MissingError: %v, want %v", got, want)
			}
		})
	}
}

// A bare name must not reach the dynamic loader, which would look elsewhere.
func TestExplicitIsMadeAbsolute(t *testing.T) {
	dir := tree(t, "a.so", "m.onnx")
	t.Chdir(dir)
	got, err := Locate("a.so", "m.onnx")
	want := Paths{filepath.Join(dir, "a.so"), filepath.Join(dir, "m.onnx")}
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestLocateEnvironment(t *testing.T) {
	dir := tree(t, "a.so", "m.onnx")
	t.Setenv(EnvLibrary, filepath.Join(dir, "a.so"))
	t.Setenv(EnvModel, filepath.Join(dir, "m.onnx"))
	got, err := Locate("", "")
	want := Paths{filepath.Join(dir, "a.so"), filepath.Join(dir, "m.onnx")}
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestLocateMissingModel(t *testing.T) {
	dir := tree(t, "a.so")
	t.Chdir(dir)
	t.Setenv(EnvModel, "")
	_, err := Locate("a.so", "")
	var missing *MissingError
	if !errors.As(err, &missing) || missing.What != "vad model" || missing.Env != EnvModel {
		t.Errorf("got %v, want a MissingError for the model", err)
	}
}

func TestSourceTree(t *testing.T) {
	dir := tree(t,
		"src/go.mod=// a comment\nmodule sttbench // another\n\ngo 1.26\n",
		"src/sub/go.mod=module other\n", "src/sub/deep/",
		"quoted/go.mod=module \"sttbench\"\n",
		"longer/go.mod=module sttbench/other\n", "folder/go.mod/")
	for from, want := range map[string]string{
		"src": "src", "src/sub": "src", "src/sub/deep": "src", "quoted": "quoted", "longer": "", "folder": "",
	} {
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got := sourceTree(filepath.Join(dir, from)); got != want {
			t.Errorf("from %s: got %q, want %q", from, got, want)
		}
	}
}
