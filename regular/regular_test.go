package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(file, 5); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"too large", file, "has 5 bytes: more than the 0 MiB that are read"},
		{"directory", dir, "is a directory, not a file"},
		{"device", os.DevNull, "is not a regular file: copy the data to a file first"},
	} {
		if _, err := ReadFile(c.path, 4); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
