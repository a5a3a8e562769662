// Package strictyaml decodes the YAML files that people write for sttbench:
// dataset manifests and run configurations.
//
// Its stance: a typing mistake in such a file must stop the program before an
// hour of measuring, at file:line:column, and a value must mean what its author
// sees. So it takes the syntax tree of goccy/go-yaml and does the decoding
// itself, because that library's own decoder, also in strict mode, lets these
// pass (version 1.19.2):
//
//   - 1.5 in a whole-number field becomes 1; "12" and "0.9" in quotes become 12 and 0;
//   - a second document, or a file without any content, is no error;
//   - a bad duration is reported without a position;
//   - a mapping with one key that is not text (1: x) is taken as empty, with no
//     word about all its other keys;
//   - 007 or 1.10 in a text field become 7 and 1.1, 010 in a number field is 8;
//   - a key without a value silently leaves the field as it was;
//   - bytes that are not UTF-8 become U+FFFD;
//   - deep nesting costs quadratic time, then the process's stack.
//
// Anchors, aliases, merge keys, tags, directives and "? key" are refused: these
// files are short and are read by people, so a value stands where it is used.
package strictyaml

import (
	"fmt"
	"reflect"
)

// MaxSize is the largest input in bytes. The parser needs about a second and 80 MB
// for each MB (some 8,000 items of a manifest), so this keeps a mistaken path, such
// as that of a log, from costing minutes and gigabytes.
const MaxSize = 16 << 20

// maxDepth is the deepest nesting. The parser below recurses once per level.
const maxDepth = 64

// Pos is a place in a file: line and column, both counted from 1, the column in
// characters. The zero Pos means "nowhere": the value was not in the file.
type Pos struct{ Line, Column int }

// IsValid reports whether p is a place in a file.
func (p Pos) IsValid() bool { return p.Line > 0 }

// Error says what is wrong at which place of a file. All errors of [Decode] have
// this type; the packages that check decoded values make their own with [Errorf].
type Error struct {
	File string
	Pos  Pos // not valid where the error is about the file as a whole
	Err  error
}

// Error returns "file:line:column: message", or "file: message" without a place.
func (e *Error) Error() string {
	if !e.Pos.IsValid() {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Pos.Line, e.Pos.Column, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [Error] for a place; format and args are those of [fmt.Errorf].
func Errorf(file string, pos Pos, format string, args ...any) *Error {
	return &Error{File: file, Pos: pos, Err: fmt.Errorf(format, args...)}
}

// At is a value together with the place where it was written. A field of type
// At[T] is decoded like a T. Use it where a value is checked after decoding, so
// that the message can point at it, or where "not given" must be told from the
// zero value.
type At[T any] struct {
	Value T
	Pos   Pos
}

// Given reports whether the value was in the file.
func (a At[T]) Given() bool { return a.Pos.IsValid() }

// Or returns the value, or def where the file does not give one.
func (a At[T]) Or(def T) T {
	if a.Given() {
		return a.Value
	}
	return def
}

// locate records the place and returns where to decode the value.
func (a *At[T]) locate(p Pos) any {
	a.Pos = p
	return &a.Value
}

// Decode decodes the single document in data into the value that into points to.
// The file name is used in errors only. Values in *into that the document does
// not mention stay as they are, so defaults can be set beforehand.
//
// A struct field takes the key named by its tag, `yaml:"name"`, and is skipped
// with `yaml:"-"` or without a tag; `yaml:"name,required"` makes a missing key an
// error. Unknown and repeated keys and keys without a value are errors.
//
// Beside structs, the targets are maps with string keys, slices, pointers, [At],
// [time.Duration] (200ms, 1m30s), types with UnmarshalText, and:
//
//   - string: any scalar, exactly as written, so 007, 1.10, no and true stay text;
//   - bool: true or false;
//   - integers: decimal, without fraction, exponent, leading zero or quotes;
//   - floats: decimal and finite, without quotes.
//
// The error is an [*Error]. Decode panics where into is no pointer or holds a
// type it cannot decode, as that is a mistake in the program.
func Decode(file string, data []byte, into any) error {
	dst := reflect.ValueOf(into)
	if dst.Kind() != reflect.Pointer || dst.IsNil() {
		panic(fmt.Sprintf("strictyaml: cannot decode into %T", into))
	}
	root, err := parse(file, data)
	if err != nil {
		return err
	}
	d := decoder{file: file}
	return d.value(root, dst.Elem())
}
