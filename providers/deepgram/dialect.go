package deepgram

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sttbench/providers"
	"sttbench/record"
)

// The control messages. They must be text frames: in a binary frame the same
// bytes would be taken for audio.
const (
	finalize    = `{"type":"Finalize"}`
	keepAlive   = `{"type":"KeepAlive"}`
	closeStream = `{"type":"CloseStream"}`
)

// Dialect is Deepgram's live protocol v1. It implements [providers.Dialect].
type Dialect struct{}

// Open implements providers.Dialect. Parameters that repeat (keyterm, keywords,
// redact, replace, search, tag, extra) are written as one value with commas in
// between. A key is required at Deepgram itself; at another endpoint it is sent
// where there is one.
func (d Dialect) Open(cfg providers.Config, _ *rand.Rand) (providers.Session, error) {
	if rates := d.Describe().SampleRates; !slices.Contains(rates, cfg.SampleRate) {
		return nil, bad("sample rate", fmt.Sprintf("%d Hz is not offered", cfg.SampleRate), fmt.Sprintf("use one of %v", rates))
	}
	if cfg.Key.Empty() && cfg.Endpoint == "" {
		return nil, bad("key", "missing", "set the environment variable "+keyVar)
	}
	if strings.ContainsFunc(cfg.Key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, bad("key", "holds blanks or characters that no key has", "check the environment variable "+keyVar)
	}
	u, err := target(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	q, err := query(cfg)
	if err != nil {
		return nil, err
	}
	u.RawQuery = q.Encode()
	s := &session{url: u.String(), header: http.Header{}}
	if !cfg.Key.Empty() {
		s.header.Set("Authorization", "Token "+cfg.Key.Reveal())
	}
	return s, nil
}

// target is the URL to dial. An endpoint's path is a prefix of /v1/listen unless
// it already ends in it.
func target(override string) (*url.URL, error) {
	u, err := providers.ParseEndpoint(name, override, endpoint)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" {
		return nil, bad("endpoint", "holds a query", "give vendor parameters as params")
	}
	if p := strings.TrimRight(u.Path, "/"); strings.HasSuffix(p, path) {
		u.Path = p
	} else {
		u.Path = p + path
	}
	u.RawPath = ""
	return u, nil
}

// session is one stream. Nothing in it changes while it runs but the frame
// buffer of Audio, so its two halves share no state.
type session struct {
	url    string
	header http.Header
	audio  [1]providers.Frame
}

// Next implements providers.Session. The stream is ready when it is open: there
// is no greeting.
func (s *session) Next(now time.Time, resp *providers.Response) (providers.Step, error) {
	if resp != nil {
		return providers.Step{}, reject(resp, now)
	}
	return providers.Step{Dial: &providers.Dial{URL: s.url, Header: s.header}}, nil
}

// Audio implements providers.Session. An empty block gives no frame: an empty
// message would end the stream.
func (s *session) Audio(_ time.Time, pcm []byte, end time.Duration) ([]providers.Frame, error) {
	if len(pcm) == 0 {
		return nil, nil
	}
	s.audio[0] = providers.Frame{Op: record.Binary, Data: pcm, AudioEnd: end}
	return s.audio[:], nil
}

// Turn implements providers.Session.
func (s *session) Turn(_ time.Time, e providers.Edge, _ providers.Span) ([]providers.Frame, error) {
	if e != providers.End {
		return nil, nil
	}
	return []providers.Frame{providers.TextFrame(finalize)}, nil
}

// KeepAlive implements providers.Session.
func (s *session) KeepAlive(time.Time) []providers.Frame {
	return []providers.Frame{providers.TextFrame(keepAlive)}
}

// Finish implements providers.Session. The answer is the rest of the results,
// Metadata, and a normal close.
func (s *session) Finish(time.Time) []providers.Frame {
	return []providers.Frame{providers.TextFrame(closeStream)}
}
