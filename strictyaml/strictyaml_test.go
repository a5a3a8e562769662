package strictyaml_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/strictyaml"
)

// level is an enumeration that decodes itself.
type level int

func (l *level) UnmarshalText(b []byte) error {
	switch string(b) {
	case "low":
		*l = 1
	case "high":
		*l = 2
	default:
		return fmt.Errorf("level is low or high, not %q", b)
	}
	return nil
}

type config struct {
	Name    string                       `yaml:"name"`
	Count   int                          `yaml:"count"`
	Small   int8                         `yaml:"small"`
	Size    uint16                       `yaml:"size"`
	Weight  float64                      `yaml:"weight"`
	On      bool                         `yaml:"on"`
	Timeout time.Duration                `yaml:"timeout"`
	Level   level                        `yaml:"level"`
	Tags    []string                     `yaml:"tags"`
	Params  map[string]string            `yaml:"params"`
	Limit   *int                         `yaml:"limit"`
	Place   strictyaml.At[time.Duration] `yaml:"place"`
	Items   []item                       `yaml:"items"`
	Ignored string                       `yaml:"-"`
}

type item struct {
	ID  strictyaml.At[string] `yaml:"id,required"`
	Max int                   `yaml:"max"`
}

func TestDecode(t *testing.T) {
	limit := 3
	tests := []struct {
		name string
		in   string
		want config
	}{
		{"text stays as written",
			"name: 007\ntags: [1.10, no, true, 1e3, 0x1F, .inf, '', \"a\\tb\", 2020-01-01, 12:30]\n",
			config{Name: "007", Tags: []string{"1.10", "no", "true", "1e3", "0x1F", ".inf", "", "a\tb", "2020-01-01", "12:30"}}},
		{"numbers", "count: -5\nsmall: -128\nsize: +65535\nweight: 1e-3\n",
			config{Count: -5, Small: -128, Size: 65535, Weight: 0.001}},
		{"zero and plain weight", "count: 0\nweight: 2\n", config{Weight: 2}},
		{"bool, duration, text type, pointer", "on: true\ntimeout: 1m30s\nlevel: high\nlimit: 3\n",
			config{On: true, Timeout: 90 * time.Second, Level: 2, Limit: &limit}},
		{"block text", "name: |\n  one\n  two\nlevel: low\n", config{Name: "one\ntwo\n", Level: 1}},
		{"folded text over lines", "name: one\n  two\n", config{Name: "one two"}},
		{"map with keys that look like numbers", "params: {1: x, true: y, null: z, '': w}\n",
			config{Params: map[string]string{"1": "x", "true": "y", "null": "z", "": "w"}}},
		{"places", "# note\n\nplace: 2s\nitems:\n- id: é\n- {max: 2, id: b}\n", config{
			Place: strictyaml.At[time.Duration]{Value: 2 * time.Second, Pos: strictyaml.Pos{Line: 3, Column: 8}},
			Items: []item{
				{ID: strictyaml.At[string]{Value: "é", Pos: strictyaml.Pos{Line: 5, Column: 7}}},
				{ID: strictyaml.At[string]{Value: "b", Pos: strictyaml.Pos{Line: 6, Column: 16}}, Max: 2},
			}}},
		{"windows line ends and byte order mark", "\ufeffname: a b\r\ncount: 2\r\n", config{Name: "a b", Count: 2}},
		{"document markers", "# head\n---\nname: x\n...\n", config{Name: "x"}},
		{"empty mapping and list", "{items: [], params: {}}", config{Items: []item{}, Params: map[string]string{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got config
			if err := strictyaml.Decode("f.yaml", []byte(tt.in), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeKeepsDefaults(t *testing.T) {
	got := config{Count: 7, Name: "default"}
	if err := strictyaml.Decode("f.yaml", []byte("name: given"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Count != 7 || got.Name != "given" {
		t.Errorf("got %+v, want the count of 7 kept and the name replaced", got)
	}
	if v := got.Place.Or(time.Minute); v != time.Minute {
		t.Errorf("Or = %v for a value that is not in the file, want 1m", v)
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", "f.yaml:1:1: the file is empty"},
		{"comment only", "# nothing\n", "f.yaml:1:1: the file is empty"},
		{"null document", "~", "f.yaml:1:1: no value"},
		{"second document", "name: a\n---\nname: b\n", "f.yaml:2:1: second document: one document per file"},
		{"empty second document", "name: a\n---\n", "f.yaml:2:1: second document"},
		{"empty first document", "---\n---\nname: a\n", "f.yaml:2:1: second document"},
		{"document after the end mark", "name: a\n...\nname: b\n", "f.yaml:3:1: text after the end of the document"},
		{"unknown key", "name: a\nnmae: b\n", `f.yaml:2:1: unknown key "nmae": the keys here are name, count,`},
		{"ignored field", "Ignored: a\n", `f.yaml:1:1: unknown key "Ignored"`},
		{"repeated key", "name: a\n\"name\": b\n", `f.yaml:2:1: mapping key "name" already defined at [1:1]`},
		{"key that is a number", "name: a\n1: b\n", `f.yaml:2:1: unknown key "1"`},
		{"missing key", "items:\n  - id: a\n  - max: 1\n", `f.yaml:3:5: missing key "id"`},
		{"missing key in flow style", "items: [{max: 1}]\n", `f.yaml:1:9: missing key "id"`},
		{"fraction in integer", "count: 1.5", "f.yaml:1:8: want a whole number, got 1.5"},
		{"integral float in integer", "count: 1.0", "f.yaml:1:8: want a whole number, got 1.0"},
		{"exponent in integer", "count: 1e3", "f.yaml:1:8: want a whole number, got 1e3"},
		{"octal", "count: 010", "f.yaml:1:8: want a whole number, got 010"},
		{"hexadecimal", "count: 0x10", "f.yaml:1:8: want a whole number, got 0x10"},
		{"underscore", "count: 1_000", "f.yaml:1:8: want a whole number, got 1_000"},
		{"two signs", "count: +-1", "f.yaml:1:8: want a whole number"},
		{"quoted integer", `count: "12"`, `f.yaml:1:8: want a whole number, got the text "12"`},
		{"integer too large", "small: 128", "f.yaml:1:8: want a whole number from -128 to 127, got 128"},
		{"int64 overflow", "count: 9223372036854775808", "f.yaml:1:8: want a whole number from -9223372036854775808 to 9223372036854775807"},
		{"negative unsigned", "size: -1", "f.yaml:1:7: want a whole number from 0 to 65535, got -1"},
		{"text in float", "weight: heavy", "f.yaml:1:9: want a number, got heavy"},
		{"infinite float", "weight: .inf", "f.yaml:1:9: want a number, got .inf"},
		{"not a number", "weight: .nan", "f.yaml:1:9: want a number, got .nan"},
		{"float too large", "weight: 1e999", "f.yaml:1:9: 1e999 is too large a number"},
		{"dots", "weight: 1.2.3", "f.yaml:1:9: want a number, got 1.2.3"},
		{"yes", "on: yes", "f.yaml:1:5: want true or false, got yes"},
		{"quoted bool", "on: 'true'", `f.yaml:1:5: want true or false, got the text "true"`},
		{"duration", "timeout: banana", "f.yaml:1:10: want a duration such as 200ms, 1.5s or 10m, got banana"},
		{"duration without unit", "timeout: 10", "f.yaml:1:10: want a duration such as 200ms, 1.5s or 10m, got 10"},
		{"duration in At", "place: x", "f.yaml:1:8: want a duration"},
		{"text type", "level: middle", `f.yaml:1:8: level is low or high, not "middle"`},
		{"no value", "count: 1\nname:\n", `f.yaml:2:1: key "name" has no value: give one, "" for empty text, or remove the key`},
		{"no value in list", "tags: [a, ~]", "f.yaml:1:11: no value"},
		{"no value for pointer", "limit: null", `f.yaml:1:1: key "limit" has no value`},
		{"list for text", "name: [a]", "f.yaml:1:7: want text, got a list"},
		{"mapping for text", "name:\n  a: b\n", "f.yaml:2:3: want text, got a mapping"},
		{"text for list", "tags: a", "f.yaml:1:7: want a list, got a"},
		{"list for mapping", "- a", "f.yaml:1:1: want a mapping (key: value), got a list"},
		{"text for mapping", "hello", "f.yaml:1:1: want a mapping (key: value), got hello"},
		{"anchor", "name: &x a", "f.yaml:1:7: anchors and aliases"},
		{"alias", "name: *x", "f.yaml:1:7: anchors and aliases"},
		{"merge key", "<<: {name: a}", "f.yaml:1:1: merge keys"},
		{"tag", "name: !!str 5", "f.yaml:1:7: tags (!)"},
		{"explicit key", "? name\n: a\n", `f.yaml:1:1: keys in the form "? key"`},
		{"directive", "%YAML 1.2\n---\nname: a\n", "f.yaml:1:1: directives are not supported"},
		{"tab as indentation", "items:\n\t- id: a\n", "f.yaml:2:1: found character '\t'"},
		{"open quote", "name: 'a\n", "f.yaml:1:7: could not find end character of single-quoted text"},
		{"not UTF-8", "count: 1\nname: é\xff\n", "f.yaml:2:8: byte 0xff is not UTF-8"},
		{"control character", "name: a\x00b", "f.yaml:1:8: control character U+0000"},
		{"deep brackets", "name: " + strings.Repeat("[", 1e5), "f.yaml:1:71: nested more than 64 levels deep"},
		{"deep entries", strings.Repeat("- ", 1e5), "f.yaml:1:129: nested more than 64 levels deep"},
		{"too large", strings.Repeat("#\n", strictyaml.MaxSize/2+1), "f.yaml: the file has 16777218 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got config
			err := strictyaml.Decode("f.yaml", []byte(tt.in), &got)
			if err == nil {
				t.Fatalf("no error, got %+v", got)
			}
			if !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error has more than one line: %q", err)
			}
			var e *strictyaml.Error
			if !errors.As(err, &e) || e.File != "f.yaml" {
				t.Errorf("error is %#v, want a *strictyaml.Error for f.yaml", err)
			}
		})
	}
}

func TestDecodePanicsOnProgramMistakes(t *testing.T) {
	for _, into := range []any{config{}, (*config)(nil), new(chan int), new(map[int]string), new(any)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %T", into)
				}
			}()
			strictyaml.Decode("f.yaml", []byte("{a: b}"), into)
		}()
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("name: a\ncount: 2\nweight: 1.5\ntags: [x, 'y']\nitems:\n  - id: b\n    max: 3\n")
	f.Add("params: {a: 1, b: |\n c\n}\n? x\n: y\n--- \n...")
	f.Add("timeout: 1s\nplace: -2h\nlevel: low\non: true\nlimit: 9 # c\n<<: *a\nname: !t &x \"\\u00e9\"")
	f.Fuzz(func(t *testing.T, in string) {
		var got config
		err := strictyaml.Decode("f.yaml", []byte(in), &got)
		if err == nil {
			if math.IsNaN(got.Weight) || math.IsInf(got.Weight, 0) {
				t.Errorf("weight %v accepted", got.Weight)
			}
			return
		}
		if msg := err.Error(); !strings.HasPrefix(msg, "f.yaml:") {
			t.Errorf("error does not name the file: %q", msg)
		}
	})
}
