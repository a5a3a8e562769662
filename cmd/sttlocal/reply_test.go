package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/cmd/sttlocal/internal/pocketsphinx"
)

func TestReplies(t *testing.T) {
	words := []pocketsphinx.Word{
		{Text: "turn", Start: 300 * time.Millisecond, End: 900 * time.Millisecond, Confidence: 1},
		{Text: "it's", Start: 900 * time.Millisecond, End: 1200 * time.Millisecond, Confidence: 0.97},
	}
	for _, tt := range []struct{ name, got, want string }{
		{"partial", partialReply("turn on"), "{\n  \"partial\" : \"turn on\"\n}"},
		{"empty partial", partialReply(""), "{\n  \"partial\" : \"\"\n}"},
		{"empty final", finalReply(nil, true), `{"text": ""}`},
		{"without words", finalReply(words, false), "{\n  \"text\" : \"turn it's\"\n}"},
		{"with words", finalReply(words, true), `{
  "result" : [{
      "conf" : 1.000000,
      "end" : 0.900000,
      "start" : 0.300000,
      "word" : "turn"
    }, {
      "conf" : 0.970000,
      "end" : 1.200000,
      "start" : 0.900000,
      "word" : "it's"
    }],
  "text" : "turn it's"
}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("reply differs (-want +got):\n%s", diff)
			}
		})
	}
}
