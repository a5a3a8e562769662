package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"sttbench/regular"
)

// maxLine is the longest input line in bytes. The longest text that can be
// scored, some five hours of speech, is far shorter.
const maxLine = 8 << 20

// eachLine calls do with every line of r as soon as it is there, without its end
// of line, and numbers lines from 1. It ends early when ctx does, even while r
// blocks; r is then still being read from.
func eachLine(ctx context.Context, name string, r io.Reader, do func(n int, line []byte) error) error {
	type item struct {
		line []byte
		err  error
	}
	items := make(chan item)
	go func() {
		defer close(items)
		send := func(it item) bool {
			select {
			case items <- it:
				return true
			case <-ctx.Done():
				return false
			}
		}
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, maxLine)
		for sc.Scan() {
			if !send(item{line: bytes.Clone(sc.Bytes())}) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			send(item{err: err})
		}
	}()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case it, more := <-items:
			switch {
			case !more:
				return nil
			case errors.Is(it.err, bufio.ErrTooLong):
				return input(fmt.Errorf("%s:%d: line is longer than %d MiB", name, n, maxLine>>20), "")
			case it.err != nil:
				return input(fmt.Errorf("%s:%d: %w", name, n, regular.WithoutPath(it.err)), "")
			}
			if err := do(n, it.line); err != nil {
				return err
			}
		}
	}
}
