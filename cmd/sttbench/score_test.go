package main

import (
	"testing"

	"sttbench/scoring/normalize"
)

func FuzzScoreLine(f *testing.F) {
	for _, line := range []string{
		`{"id":"a","ref":"four queen of clubs","hyp":"for queen of clubs"}`,
		`{"id":"a","ref":"","hyp":"x"}`, `{"id":1}`, `[]`, `{"id":"a","ref":`, "null", "{\"id\":\"\xff\",\"ref\":\"\",\"hyp\":\"\"}",
	} {
		f.Add([]byte(line))
	}
	plain, err := normalize.Lookup("plain")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := scoreLine(plain, line)
		if err != nil {
			return
		}
		if s.Hits+s.Sub+s.Del != s.RefWords || s.Alignment == nil {
			t.Errorf("%s: counts %+v, alignment %v", line, s.Counts, s.Alignment)
		}
		if (s.WER == nil) != (s.RefWords == 0 && s.Ins > 0) {
			t.Errorf("%s: wer %v with counts %+v", line, s.WER, s.Counts)
		}
	})
}
