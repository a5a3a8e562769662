package strictyaml

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parse returns the root of the only document in data.
//
// This is the one place where the YAML library runs over foreign bytes; a panic
// in it becomes an error.
func parse(file string, data []byte) (root ast.Node, err error) {
	if len(data) > MaxSize {
		return nil, Errorf(file, Pos{}, "the file has %d bytes, more than the limit of %d", len(data), MaxSize)
	}
	if err := checkText(file, data); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, Errorf(file, Pos{}, "the YAML parser failed: %v", p)
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := checkTokens(file, tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	if len(f.Docs) == 0 || f.Docs[0].Body == nil {
		return nil, Errorf(file, Pos{Line: 1, Column: 1}, "the file is empty")
	}
	return f.Docs[0].Body, nil
}

// checkText refuses bytes that are not text; the lexer would replace or drop them.
func checkText(file string, data []byte) error {
	pos := Pos{Line: 1, Column: 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return Errorf(file, pos, "byte 0x%02x is not UTF-8: save the file as UTF-8", data[i])
		}
		switch {
		case r == '\n':
			pos = Pos{Line: pos.Line + 1, Column: 1}
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return Errorf(file, pos, "control character %U is not allowed in YAML", r)
		case r == '\ufeff' && i == 0:
		default:
			pos.Column++
		}
		i += size
	}
	return nil
}

// checkTokens refuses what must not reach the parser: further documents, which it
// accepts, and deep nesting, on which it recurses. Nesting by indentation needs
// no check: its cost in bytes grows with the square of the depth.
func checkTokens(file string, tokens token.Tokens) error {
	var (
		flow    int // open brackets
		entries int // "- " and "? " on one line
		line    int
		ended   bool
	)
	for i, t := range tokens {
		pos := posOf(t)
		if pos.Line != line {
			line, entries = pos.Line, 0
		}
		if ended {
			return Errorf(file, pos, "text after the end of the document: one document per file")
		}
		switch t.Type {
		case token.DirectiveType:
			return Errorf(file, pos, "directives are not supported: remove the %% line")
		case token.DocumentHeaderType:
			if onlyComments(tokens[:i]) {
				continue
			}
			return Errorf(file, pos, "second document: one document per file")
		case token.DocumentEndType:
			ended = true
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			entries++
		}
		if flow > maxDepth || entries > maxDepth {
			return Errorf(file, pos, "nested more than %d levels deep", maxDepth)
		}
	}
	return nil
}

func onlyComments(tokens token.Tokens) bool {
	for _, t := range tokens {
		if t.Type != token.CommentType {
			return false
		}
	}
	return true
}

// syntaxError turns an error of the parser into ours: its place, and its message
// without the excerpt of the source that the library adds.
func syntaxError(file string, err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		return Errorf(file, posOf(e.GetToken()), "%s", e.GetMessage())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return Errorf(file, Pos{}, "%s", first)
}

func posOf(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{}
	}
	return Pos{Line: t.Position.Line, Column: t.Position.Column}
}
