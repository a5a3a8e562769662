package providers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sttbench/record"
)

// Reject reads an HTTP refusal by its status, which means the same at every
// vendor; detail is the vendor's own text where the dialect found one, else the
// body's first line is used. now dates a Retry-After given as an HTTP date.
func Reject(resp *Response, detail string, now time.Time) *Rejection {
	r := &Rejection{Status: resp.Status, Detail: detail, Reason: reasonOf(resp.Status)}
	if r.Detail == "" {
		r.Detail = bodyText(resp.Body)
	}
	if r.Detail == "" {
		r.Detail = http.StatusText(resp.Status)
	}
	r.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
	return r
}

func reasonOf(status int) record.Reject {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return record.RejectAuth
	case status == http.StatusPaymentRequired:
		return record.RejectQuota
	case status == http.StatusTooManyRequests:
		return record.RejectRate
	case status >= 500:
		return record.RejectServer
	}
	return record.RejectBadRequest
}

// bodyText finds the message in the usual JSON shapes, else takes the first
// line; either is cut to 300 bytes.
func bodyText(body []byte) string {
	var fields map[string]json.RawMessage
	text := ""
	if json.Unmarshal(body, &fields) == nil {
		for _, key := range []string{"err_msg", "message", "error", "detail", "details", "reason"} {
			var s string
			if json.Unmarshal(fields[key], &s) == nil && s != "" {
				text = s
				break
			}
			var nested struct {
				Message string `json:"message"`
			}
			if json.Unmarshal(fields[key], &nested) == nil && nested.Message != "" {
				text = nested.Message
				break
			}
		}
	}
	if text == "" {
		text, _, _ = strings.Cut(strings.TrimSpace(string(body)), "\n")
	}
	if len(text) > 300 {
		text = text[:300]
	}
	return strings.ToValidUTF8(text, "")
}

// retryAfter reads both forms of RFC 9110 §10.2.3 and gives 0 for anything else.
func retryAfter(value string, now time.Time) time.Duration {
	if secs, err := strconv.Atoi(value); err == nil && secs >= 0 && secs < 1<<20 {
		return time.Duration(secs) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
