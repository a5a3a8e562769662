package streamer

import (
	"bytes"
	"strings"

	"sttbench/providers"
)

// redactor takes the key out of what a provider says: some repeat it in their
// error messages, and the record keeps those.
type redactor struct{ key []byte }

// minSecret is the shortest key that is looked for. Shorter ones are placeholders
// such as "test", and replacing these would spoil transcripts.
const minSecret = 12

func newRedactor(key providers.Secret) redactor {
	if len(key.Reveal()) < minSecret {
		return redactor{}
	}
	return redactor{[]byte(key.Reveal())}
}

const redacted = "[secret]"

func (r redactor) bytes(p []byte) []byte {
	if r.key == nil || !bytes.Contains(p, r.key) {
		return p
	}
	return bytes.ReplaceAll(p, r.key, []byte(redacted))
}

func (r redactor) string(s string) string {
	if r.key == nil {
		return s
	}
	return strings.ReplaceAll(s, string(r.key), redacted)
}
