package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// located is implemented by *At[T] for every T.
type located interface{ locate(Pos) any }

var durationType = reflect.TypeFor[time.Duration]()

type decoder struct{ file string }

func (d *decoder) errorf(n ast.Node, format string, args ...any) error {
	return Errorf(d.file, nodePos(n), format, args...)
}

// value decodes n into dst, which is addressable.
func (d *decoder) value(n ast.Node, dst reflect.Value) error {
	if err := d.checkNode(n); err != nil {
		return err
	}
	switch p := dst.Addr().Interface().(type) {
	case located:
		return d.value(n, reflect.ValueOf(p.locate(nodePos(n))).Elem())
	case encoding.TextUnmarshaler:
		s, err := d.scalar(n, "text")
		if err != nil {
			return err
		}
		if err := p.UnmarshalText([]byte(s.text)); err != nil {
			return d.errorf(n, "%w", err)
		}
		return nil
	}
	if dst.Type() == durationType {
		return d.duration(n, dst)
	}
	switch dst.Kind() {
	case reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		return d.value(n, dst.Elem())
	case reflect.Struct:
		return d.structure(n, dst)
	case reflect.Map:
		return d.mapping(n, dst)
	case reflect.Slice:
		return d.list(n, dst)
	case reflect.String:
		s, err := d.scalar(n, "text")
		if err != nil {
			return err
		}
		dst.SetString(s.text)
		return nil
	case reflect.Bool:
		return d.boolean(n, dst)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return d.integer(n, dst)
	case reflect.Float32, reflect.Float64:
		return d.float(n, dst)
	}
	panic(fmt.Sprintf("strictyaml: cannot decode into %v", dst.Type()))
}

// checkNode refuses the nodes that no target accepts.
func (d *decoder) checkNode(n ast.Node) error {
	switch n := n.(type) {
	case *ast.NullNode:
		return d.errorf(n, "no value")
	case *ast.AnchorNode, *ast.AliasNode:
		return d.errorf(n, "anchors and aliases (& and *) are not supported: write the value out, or put text in quotes")
	case *ast.TagNode:
		return d.errorf(n, "tags (!) are not supported: put text that begins with ! in quotes")
	}
	return nil
}

// structure decodes a mapping into the tagged fields of a struct.
func (d *decoder) structure(n ast.Node, dst reflect.Value) error {
	fields, names, required := fieldsOf(dst.Type())
	seen, err := d.pairs(n, func(key string, keyNode, value ast.Node) error {
		i, ok := fields[key]
		if !ok {
			return d.errorf(keyNode, "unknown key %q: the keys here are %s", key, strings.Join(names, ", "))
		}
		return d.value(value, dst.Field(i))
	})
	if err != nil {
		return err
	}
	for _, name := range required {
		if !seen[name] {
			return d.errorf(n, "missing key %q", name)
		}
	}
	return nil
}

// fieldsOf reads the tags of a struct type: field index by key, all keys and the
// required keys, both in the order of the declaration.
func fieldsOf(t reflect.Type) (index map[string]int, names, required []string) {
	index = make(map[string]int)
	for i := range t.NumField() {
		name, opt, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		index[name] = i
		names = append(names, name)
		if opt == "required" {
			required = append(required, name)
		}
	}
	return index, names, required
}

func (d *decoder) mapping(n ast.Node, dst reflect.Value) error {
	t := dst.Type()
	if t.Key().Kind() != reflect.String {
		panic(fmt.Sprintf("strictyaml: cannot decode into %v", t))
	}
	m := reflect.MakeMap(t)
	_, err := d.pairs(n, func(key string, _, value ast.Node) error {
		v := reflect.New(t.Elem()).Elem()
		if err := d.value(value, v); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), v)
		return nil
	})
	if err != nil {
		return err
	}
	dst.Set(m)
	return nil
}

// pairs calls f for each key and value of a mapping and returns the set of keys.
func (d *decoder) pairs(n ast.Node, f func(key string, keyNode, value ast.Node) error) (map[string]bool, error) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, d.errorf(n, "want a mapping (key: value), got %s", describe(n))
	}
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		key, err := d.key(v.Key)
		if err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, d.errorf(v.Key, "key %q is already defined", key)
		}
		seen[key] = true
		// Told at the key, as an absent value has no place of its own.
		if _, ok := v.Value.(*ast.NullNode); ok {
			return nil, d.errorf(v.Key, `key %q has no value: give one, "" for empty text, or remove the key`, key)
		}
		if err := f(key, v.Key, v.Value); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

func (d *decoder) key(n ast.MapKeyNode) (string, error) {
	switch n := n.(type) {
	case *ast.MergeKeyNode:
		return "", d.errorf(n, "merge keys (<<) are not supported: write the values out")
	case *ast.MappingKeyNode:
		return "", d.errorf(n, `keys in the form "? key" are not supported: write "key: value"`)
	case *ast.NullNode:
		return n.GetToken().Value, nil
	}
	s, ok := scalarOf(n)
	if !ok {
		return "", d.errorf(n, "want a key, got %s", describe(n))
	}
	return s.text, nil
}

func (d *decoder) list(n ast.Node, dst reflect.Value) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.errorf(n, "want a list, got %s", describe(n))
	}
	s := reflect.MakeSlice(dst.Type(), len(seq.Values), len(seq.Values))
	for i, v := range seq.Values {
		if err := d.value(v, s.Index(i)); err != nil {
			return err
		}
	}
	dst.Set(s)
	return nil
}

func (d *decoder) boolean(n ast.Node, dst reflect.Value) error {
	s, err := d.scalar(n, "true or false")
	if err != nil {
		return err
	}
	if s.quoted || s.text != "true" && s.text != "false" {
		return d.errorf(n, "want true or false, got %s", describe(n))
	}
	dst.SetBool(s.text == "true")
	return nil
}

func (d *decoder) integer(n ast.Node, dst reflect.Value) error {
	s, err := d.scalar(n, "a whole number")
	if err != nil {
		return err
	}
	if s.quoted || !isDecimal(s.text) {
		return d.errorf(n, "want a whole number, got %s", describe(n))
	}
	bits := dst.Type().Bits()
	if dst.CanUint() {
		u, err := strconv.ParseUint(strings.TrimPrefix(s.text, "+"), 10, bits)
		if err != nil {
			return d.errorf(n, "want a whole number from 0 to %d, got %s", ^uint64(0)>>(64-bits), describe(n))
		}
		dst.SetUint(u)
		return nil
	}
	i, err := strconv.ParseInt(s.text, 10, bits)
	if err != nil {
		limit := int64(^uint64(0) >> (65 - bits))
		return d.errorf(n, "want a whole number from %d to %d, got %s", -limit-1, limit, describe(n))
	}
	dst.SetInt(i)
	return nil
}

// isDecimal reports whether s is a decimal integer that no dialect of YAML reads
// as another number: no 010 (octal to some), 0x1F, 1_000 or 1e3.
func isDecimal(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return s != "" && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

func (d *decoder) float(n ast.Node, dst reflect.Value) error {
	s, err := d.scalar(n, "a number")
	if err != nil {
		return err
	}
	// The character set keeps out inf, nan, 0x1p-2 and 1_000, which ParseFloat takes.
	if s.quoted || strings.Trim(s.text, "+-.0123456789eE") != "" {
		return d.errorf(n, "want a number, got %s", describe(n))
	}
	f, err := strconv.ParseFloat(s.text, dst.Type().Bits())
	if errors.Is(err, strconv.ErrRange) {
		return d.errorf(n, "%s is too large a number", describe(n))
	}
	if err != nil {
		return d.errorf(n, "want a number, got %s", describe(n))
	}
	dst.SetFloat(f)
	return nil
}

func (d *decoder) duration(n ast.Node, dst reflect.Value) error {
	const want = "a duration such as 200ms, 1.5s or 10m"
	s, err := d.scalar(n, want)
	if err != nil {
		return err
	}
	x, err := time.ParseDuration(s.text)
	if err != nil {
		return d.errorf(n, "want %s, got %s", want, describe(n))
	}
	dst.SetInt(int64(x))
	return nil
}

// A scalar is the text of a single value as its author wrote it.
type scalar struct {
	text   string
	quoted bool // in quotes or a block: text, whatever it looks like
}

func (d *decoder) scalar(n ast.Node, want string) (scalar, error) {
	s, ok := scalarOf(n)
	if !ok {
		return scalar{}, d.errorf(n, "want %s, got %s", want, describe(n))
	}
	return s, nil
}

func scalarOf(n ast.Node) (scalar, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return scalar{text: n.Value, quoted: n.Token.Type != token.StringType}, true
	case *ast.LiteralNode:
		return scalar{text: n.Value.Value, quoted: true}, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return scalar{text: n.GetToken().Value}, true
	}
	return scalar{}, false
}

// describe names what stands in the file, for messages.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	s, ok := scalarOf(n)
	if !ok {
		return "a " + strings.ToLower(n.Type().YAMLName())
	}
	const limit = 40
	if r := []rune(s.text); len(r) > limit {
		s.text = string(r[:limit]) + "…"
	}
	if s.quoted {
		return fmt.Sprintf("the text %q", s.text)
	}
	return strings.Trim(strconv.Quote(s.text), `"`)
}

// nodePos returns where n begins. The library places a block mapping at its first
// colon; people look for the first key.
func nodePos(n ast.Node) Pos {
	switch m := n.(type) {
	case *ast.MappingNode:
		if t := m.GetToken(); len(m.Values) > 0 && (t == nil || t.Type == token.MappingValueType) {
			return nodePos(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return nodePos(m.Key)
	}
	return posOf(n.GetToken())
}
