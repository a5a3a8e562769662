package providers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sttbench/record"
)

func TestSecretNeverPrints(t *testing.T) {
	s := struct {
		Key Secret `json:"key"`
		In  *Secret
	}{NewSecret("hunter2"), new(Secret)}
	*s.In = NewSecret("hunter2")
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := string(b)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, s.Key) + fmt.Sprintf(verb, s.In)
	}
	if strings.Contains(out, "hunter2") || strings.Contains(out, "68756e74657232") {
		t.Errorf("the secret is in %s", out)
	}
	if NewSecret("hunter2").Reveal() != "hunter2" || !NewSecret("").Empty() {
		t.Error("a secret must give its text to those who ask")
	}
}

func TestReject(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name   string
		resp   Response
		detail string
		want   Rejection
	}{
		{"vendor's json", Response{Status: 401, Body: []byte(`{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials."}`)}, "",
			Rejection{record.RejectAuth, 401, "Invalid credentials.", "", 0}},
		{"nested json", Response{Status: 402, Body: []byte(`{"error":{"message":"no credit"}}`)}, "", Rejection{record.RejectQuota, 402, "no credit", "", 0}},
		{"text", Response{Status: 400, Body: []byte("bad query\nmore")}, "", Rejection{record.RejectBadRequest, 400, "bad query", "", 0}},
		{"the dialect's own detail wins", Response{Status: 403, Body: []byte("x")}, "model is not yours", Rejection{record.RejectAuth, 403, "model is not yours", "", 0}},
		{"nothing", Response{Status: 503}, "", Rejection{record.RejectServer, 503, "Service Unavailable", "", 0}},
		{"retry in seconds", Response{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, "", Rejection{record.RejectRate, 429, "Too Many Requests", "", 7 * time.Second}},
		{"retry at a date", Response{Status: 429, Header: http.Header{"Retry-After": {"Mon, 30 Nov 2026 12:00:30 GMT"}}}, "", Rejection{record.RejectRate, 429, "Too Many Requests", "", 30 * time.Second}},
		{"retry in the past", Response{Status: 429, Header: http.Header{"Retry-After": {"Mon, 30 Nov 2026 11:00:30 GMT"}}}, "", Rejection{record.RejectRate, 429, "Too Many Requests", "", 0}},
		{"retry nonsense", Response{Status: 429, Header: http.Header{"Retry-After": {"-5"}}}, "", Rejection{record.RejectRate, 429, "Too Many Requests", "", 0}},
		{"long and broken text is cut", Response{Status: 400, Body: []byte(strings.Repeat("é", 200) + "\xff")}, "", Rejection{record.RejectBadRequest, 400, strings.Repeat("é", 150), "", 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := *Reject(&c.resp, c.detail, now); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
