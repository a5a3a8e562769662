// Package sttbench_test holds the habits of the house: rules about the source
// that no single package can test.
package sttbench_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type pkg struct {
	ImportPath, Dir string
	Doc             string
	GoFiles         []string
	Imports         []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
}

// Imports run one way: a package may use only packages of a lower level.
func TestImportsRunDownwards(t *testing.T) {
	levels := [][]string{
		{"sttbench/record", "sttbench/regular", "sttbench/strictyaml", "sttbench/vad", "sttbench/scoring/normalize", "sttbench/scoring/stat"},
		{"sttbench/scoring/wer", "sttbench/corpus", "sttbench/endpoint", "sttbench/providers"},
		{"sttbench/providers/emulator", "sttbench/streamer"},
		{"sttbench/providers/conformance", "sttbench/providers/deepgram", "sttbench/providers/openai", "sttbench/providers/vosk"},
		{"sttbench/providers/catalogue"},
		{"sttbench/runs", "sttbench/calibrate"},
		{"sttbench/report"},
		{"sttbench/cmd/sttlocal/internal/pocketsphinx"},
		{"sttbench/cmd/sttbench", "sttbench/cmd/sttlocal"},
	}
	level := func(path string) int {
		return slices.IndexFunc(levels, func(l []string) bool { return slices.Contains(l, path) })
	}
	for _, p := range packages(t) {
		own := level(p.ImportPath)
		if own < 0 {
			t.Errorf("%s has no level: add it to this test where it belongs", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "sttbench/") && level(i) >= own {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, i)
			}
		}
	}
}

// Only the streamer measures; emulators and servers are processes of their own.
func TestOnlyTheStreamerReadsAClock(t *testing.T) {
	may := []string{"sttbench/streamer", "sttbench/providers/emulator", "sttbench/cmd/sttlocal", "sttbench/cmd/sttbench"}
	for _, p := range packages(t) {
		if slices.Contains(may, p.ImportPath) {
			continue
		}
		for _, f := range parse(t, p) {
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && (sel.Sel.Name == "Now" || sel.Sel.Name == "Since" || sel.Sel.Name == "Sleep") {
					t.Errorf("%s calls time.%s", p.ImportPath, sel.Sel.Name)
				}
				return true
			})
		}
	}
}

// Every package has a comment and every exported name of a package that others
// can import a doc comment; nothing runs at program start.
func TestEverythingIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s has an init function", p.ImportPath)
				}
			}
			files = append(files, f)
		}
		if strings.Contains(p.ImportPath, "/cmd/") {
			continue
		}
		d, err := doc.NewFromFiles(fset, files, p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		undocumented(t, p.ImportPath, d)
	}
}

func undocumented(t *testing.T, path string, d *doc.Package) {
	t.Helper()
	missing := func(name, text string) {
		if text == "" && ast.IsExported(name) {
			t.Errorf("%s: %s has no doc comment", path, name)
		}
	}
	for _, f := range d.Funcs {
		missing(f.Name, f.Doc)
	}
	for _, typ := range d.Types {
		missing(typ.Name, typ.Doc)
		for _, f := range typ.Funcs {
			missing(f.Name, f.Doc)
		}
		for _, m := range typ.Methods {
			// What these do is said by the interface they are for.
			if !slices.Contains([]string{"Error", "Unwrap", "Is", "String"}, m.Name) {
				missing(m.Name, m.Doc)
			}
		}
	}
}

func parse(t *testing.T, p pkg) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
