package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sttbench/cmd/sttlocal/internal/pocketsphinx"
)

// emptyFinal is what the Vosk server says when there is nothing to say; unlike
// its other replies it is not pretty-printed.
const emptyFinal = `{"text": ""}`

// partialReply is the reply to audio inside an utterance or before one.
func partialReply(text string) string {
	return fmt.Sprintf("{\n  \"partial\" : %s\n}", quote(text))
}

// finalReply is the reply that ends an utterance. The layout, with a space
// before each colon and six decimals, is that of the Vosk server, whose
// clients may compare texts.
func finalReply(words []pocketsphinx.Word, showWords bool) string {
	if len(words) == 0 {
		return emptyFinal
	}
	texts := make([]string, len(words))
	items := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
		items[i] = fmt.Sprintf("{\n      \"conf\" : %f,\n      \"end\" : %f,\n      \"start\" : %f,\n      \"word\" : %s\n    }",
			w.Confidence, w.End.Seconds(), w.Start.Seconds(), quote(w.Text))
	}
	var b strings.Builder
	b.WriteString("{\n")
	if showWords {
		b.WriteString("  \"result\" : [" + strings.Join(items, ", ") + "],\n")
	}
	b.WriteString("  \"text\" : " + quote(strings.Join(texts, " ")) + "\n}")
	return b.String()
}

// quote writes a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return string(b)
}
