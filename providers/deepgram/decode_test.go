package deepgram

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/providers"
	"sttbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// frames reads a conversation: a received frame per line, which is a text message
// as it is, "binary HEX" or "close CODE REASON"; lines with "#" are remarks.
func frames(t testing.TB, file string) (all []providers.Frame) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "#":
		case "binary":
			b, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, providers.BinaryFrame(b))
		case "close":
			code, reason, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(code)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, providers.Frame{Op: record.CloseOp, Code: n, Data: []byte(reason)})
		default:
			all = append(all, providers.TextFrame(line))
		}
	}
	return all
}

func conversations(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/decode/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	return files
}

func TestDecodeGolden(t *testing.T) {
	for _, file := range conversations(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := open(t, providers.Config{Forced: true})
			var b strings.Builder
			for _, f := range frames(t, file) {
				events, replies, err := s.Decode(time.Time{}, f)
				if err != nil {
					fmt.Fprintln(&b, "error:", err)
				}
				for _, e := range events {
					line, err := json.Marshal(e)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&b, "%s\n", line)
				}
				if replies != nil {
					t.Errorf("replies %v: the protocol has none", replies)
				}
			}
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, file := range conversations(f) {
		for _, frame := range frames(f, file) {
			f.Add(string(frame.Op), frame.Code, frame.Data)
		}
	}
	f.Fuzz(func(t *testing.T, op string, code int, data []byte) {
		s := open(t, providers.Config{})
		events, _, err := s.Decode(time.Time{}, providers.Frame{Op: record.Op(op), Code: code, Data: data})
		if (err == nil) != (len(events) == 1) {
			t.Fatalf("%d events, error %v: want exactly one of the two", len(events), err)
		}
		for _, e := range events {
			if e.Kind == "" || e.Cause == "" {
				t.Errorf("event without kind or cause: %+v", e)
			}
			for _, at := range []*time.Duration{e.AudioStart, e.AudioEnd} {
				if at != nil && *at < 0 {
					t.Errorf("negative audio position %v", *at)
				}
			}
			if _, err := json.Marshal(e); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRejections(t *testing.T) {
	for _, test := range []struct {
		name   string
		resp   providers.Response
		reason record.Reject
		want   string
	}{
		{"bad key", providers.Response{
			Status: 401,
			Header: http.Header{"Dg-Request-Id": {"7a3c"}, "Dg-Error": {"Invalid credentials."}},
			Body:   []byte(`{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials.","request_id":"7a3c"}`),
		}, record.RejectAuth, "INVALID_AUTH: Invalid credentials. (request 7a3c)"},
		{"no credit", providers.Response{Status: 402, Body: []byte(`{"err_code":"ASR_PAYMENT_REQUIRED","err_msg":"no credit"}`)},
			record.RejectQuota, "ASR_PAYMENT_REQUIRED: no credit"},
		{"too many", providers.Response{Status: 429, Body: []byte(`{"err_code":"TOO_MANY_REQUESTS","err_msg":"Too many requests. Please try again later"}`)},
			record.RejectRate, "TOO_MANY_REQUESTS: Too many requests. Please try again later"},
		{"newer shape", providers.Response{Status: 400, Body: []byte(`{"category":"INVALID_JSON","message":"bad","details":"more","request_id":"x"}`)},
			record.RejectBadRequest, "INVALID_JSON: bad: more"},
		{"header only", providers.Response{Status: 400, Header: http.Header{"Dg-Error": {"Bad Request"}}}, record.RejectBadRequest, "Bad Request"},
		{"proxy's page", providers.Response{Status: 503, Body: []byte("<html>\nbusy")}, record.RejectServer, "<html>"},
		{"nothing", providers.Response{Status: 500}, record.RejectServer, "Internal Server Error"},
	} {
		if test.resp.Header == nil {
			test.resp.Header = http.Header{}
		}
		s := open(t, providers.Config{})
		_, err := s.Next(time.Time{}, &test.resp)
		r, ok := err.(*providers.Rejection)
		if !ok {
			t.Errorf("%s: error %v", test.name, err)
			continue
		}
		if r.Reason != test.reason || r.Detail != test.want || r.Status != test.resp.Status {
			t.Errorf("%s: %+v, want %s, %q", test.name, r, test.reason, test.want)
		}
	}
}
