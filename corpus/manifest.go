package corpus

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"sttbench/regular"
	"sttbench/strictyaml"
)

// maxName is the longest id in bytes. It leaves room for ".<repeat>.jsonl.tmp"
// in the 255 bytes that file systems allow for a name.
const maxName = 128

// ManifestError says that a manifest cannot be used. For mistakes in the file Err
// is a [*strictyaml.Error], which carries the place.
type ManifestError struct {
	Path string
	Err  error
}

// Error returns "file:line:column: message", or "file: message" without a place.
func (e *ManifestError) Error() string {
	var at *strictyaml.Error
	if errors.As(e.Err, &at) {
		return at.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ManifestError) Unwrap() error { return e.Err }

// manifest is the file format:
//
//	dataset: calls
//	version: "2026-03"
//	language: en
//	items:
//	  - id: call-001.a
//	    audio: audio/call-001.a.wav
//	    reference: I would like to cancel my order
//	    tags: [phone, noisy]
//	    recording: call-001
//	    weight: 1
//	    language: en-GB
type manifest struct {
	Dataset  text                           `yaml:"dataset,required"`
	Version  text                           `yaml:"version,required"`
	Language text                           `yaml:"language,required"`
	Items    strictyaml.At[[]manifestEntry] `yaml:"items,required"`
}

type manifestEntry struct {
	ID        text                   `yaml:"id,required"`
	Audio     text                   `yaml:"audio,required"`
	Reference text                   `yaml:"reference,required"`
	Tags      []text                 `yaml:"tags"`
	Recording text                   `yaml:"recording"`
	Weight    strictyaml.At[float64] `yaml:"weight"`
	Language  text                   `yaml:"language"`
}

type text = strictyaml.At[string]

// Load reads a manifest, a YAML file with the keys dataset, version, language and
// items. An item has the keys
//
//   - id: letters, digits, dot, underscore and hyphen, at most 128, no dot first;
//     no two ids may be equal when case is ignored;
//   - audio: path of the audio file, relative to the folder of the manifest;
//   - reference: what is said, exactly as written; "" for an item without speech,
//     which must be given so that it cannot be forgotten;
//   - tags: optional list of words;
//   - recording: optional, the id where not given;
//   - weight: optional, ≥ 0, 1 where not given;
//   - language: optional, that of the dataset where not given.
//
// Load does not look at the audio files. The error is a [*ManifestError] for the
// first mistake found.
func Load(path string) (*Dataset, error) {
	ds, err := load(path)
	if err != nil {
		return nil, &ManifestError{Path: path, Err: err}
	}
	return ds, nil
}

func load(path string) (*Dataset, error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than the limit, so that Decode sees and reports a larger file.
	data, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxSize+1))
	if err != nil {
		return nil, regular.WithoutPath(err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return parseManifest(path, dir, data)
}

// parseManifest is Load without the file system; dir is the folder that relative
// audio paths start from.
func parseManifest(name, dir string, data []byte) (*Dataset, error) {
	var m manifest
	if err := strictyaml.Decode(name, data, &m); err != nil {
		return nil, err
	}
	c := checker{file: name}
	c.line("dataset", m.Dataset)
	c.line("version", m.Version)
	c.language(m.Language)
	if len(m.Items.Value) == 0 {
		c.errorf(m.Items.Pos, "items is empty: a dataset has at least one item")
	}
	ds := &Dataset{Name: m.Dataset.Value, Version: m.Version.Value, Language: m.Language.Value}
	ids := make(map[string]text, len(m.Items.Value)) // by lower case
	for _, e := range m.Items.Value {
		c.id(e.ID, ids)
		ds.Items = append(ds.Items, c.item(ds, dir, e))
		if c.err != nil {
			break
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	return ds, nil
}

// checker keeps the first mistake it finds.
type checker struct {
	file string
	err  error
}

func (c *checker) errorf(pos strictyaml.Pos, format string, args ...any) {
	if c.err == nil {
		c.err = strictyaml.Errorf(c.file, pos, format, args...)
	}
}

func (c *checker) item(ds *Dataset, dir string, e manifestEntry) Item {
	it := Item{
		Dataset:   ds.Name,
		ID:        e.ID.Value,
		Audio:     filepath.FromSlash(e.Audio.Value),
		Reference: e.Reference.Value,
		Tags:      []string{},
		Recording: e.Recording.Or(e.ID.Value),
		Weight:    e.Weight.Or(1),
		Language:  e.Language.Or(ds.Language),
	}
	c.line("audio", e.Audio)
	if !filepath.IsAbs(it.Audio) {
		it.Audio = filepath.Join(dir, it.Audio)
	}
	if it.Reference != "" && strings.TrimSpace(it.Reference) == "" {
		c.errorf(e.Reference.Pos, `reference holds nothing but space: write "" for an item without speech`)
	}
	seen := make(map[string]bool, len(e.Tags))
	for _, tag := range e.Tags {
		c.line("tag", tag)
		if seen[tag.Value] {
			c.errorf(tag.Pos, "tag %q is given twice", tag.Value)
		}
		seen[tag.Value] = true
		it.Tags = append(it.Tags, tag.Value)
	}
	if e.Recording.Given() {
		c.line("recording", e.Recording)
	}
	if it.Weight < 0 {
		c.errorf(e.Weight.Pos, "weight %v is negative: use 0 to leave the item out of weighted averages", it.Weight)
	}
	if e.Language.Given() {
		c.language(e.Language)
	}
	return it
}

// line checks a value that stands in tables and paths: some visible text, and no
// character that would break a line.
func (c *checker) line(key string, v text) {
	switch {
	case strings.TrimSpace(v.Value) == "":
		c.errorf(v.Pos, "%s is empty", key)
	case strings.ContainsFunc(v.Value, unicode.IsControl):
		c.errorf(v.Pos, "%s %q holds a line break or control character", key, v.Value)
	}
}

// id checks the form of an item's id, and that no item before has the same one.
func (c *checker) id(id text, ids map[string]text) {
	switch {
	case id.Value == "":
		c.errorf(id.Pos, "id is empty")
	case len(id.Value) > maxName:
		c.errorf(id.Pos, "id has %d characters, more than %d", len(id.Value), maxName)
	case id.Value[0] == '.':
		c.errorf(id.Pos, "id %q begins with a dot", id.Value)
	}
	if i := strings.IndexFunc(id.Value, func(r rune) bool { return !isAlnum(r) && !strings.ContainsRune("._-", r) }); i >= 0 {
		c.errorf(id.Pos, "id %q holds %q: it becomes a file name, so use letters a to z, digits, dot, underscore and hyphen",
			id.Value, []rune(id.Value[i:])[0])
	}
	lower := strings.ToLower(id.Value)
	if first, ok := ids[lower]; ok {
		if first.Value == id.Value {
			c.errorf(id.Pos, "id %q is already used in line %d", id.Value, first.Pos.Line)
		}
		c.errorf(id.Pos, "id %q differs from %q in line %d by case only: some file systems take them for one name",
			id.Value, first.Value, first.Pos.Line)
	}
	ids[lower] = id
}

// language checks the form of a language tag (BCP 47): parts of one to eight
// letters and digits, joined by hyphens, letters first. Which languages exist is
// the providers' business, as is what they call "multi".
func (c *checker) language(v text) {
	for i, part := range strings.Split(v.Value, "-") {
		ok := len(part) >= 1 && len(part) <= 8 && !strings.ContainsFunc(part, func(r rune) bool { return !isAlnum(r) })
		if i == 0 {
			ok = ok && len(part) >= 2 && strings.Trim(part, "0123456789") == part
		}
		if !ok {
			c.errorf(v.Pos, "language %q is not a language tag such as en or en-US", v.Value)
		}
	}
}

func isAlnum(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
