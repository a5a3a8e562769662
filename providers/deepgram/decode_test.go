package deepgram

import (
	"encoding/json"
	"flag"
	"net/http"
	"testing"
	"time"

	"sttbench/providers"
	"sttbench/providers/conformance"
	"sttbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDecodeGolden(t *testing.T) {
	forced := func(t testing.TB) providers.Session { return open(t, providers.Config{Forced: true}) }
	conformance.Golden(t, *update, forced, nil)
}

func FuzzDecode(f *testing.F) {
	for _, frame := range conformance.Frames(f) {
		f.Add(string(frame.Op), frame.Code, frame.Data)
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
		}, record.RejectAuth, "INVALID_AUTH: Invalid credentials."},
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
