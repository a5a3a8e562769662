package providers

import (
	"fmt"
	"net/url"
)

// ParseEndpoint reads the address that a user gave for a provider, or the
// vendor's own where none was given. http and https are taken as ws and wss.
// Credentials in the address are refused, because addresses are recorded. The
// error is a *[ConfigError].
func ParseEndpoint(provider, given, own string) (*url.URL, error) {
	if given == "" {
		given = own
	}
	fail := func(problem string) (*url.URL, error) {
		return nil, &ConfigError{Provider: provider, Field: "endpoint", Problem: problem,
			Hint: "write it as wss://host or ws://127.0.0.1:9000"}
	}
	u, err := url.Parse(given)
	if err != nil {
		return fail("is not a URL")
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	default:
		return fail(fmt.Sprintf("scheme %q is not ws, wss, http or https", u.Scheme))
	}
	switch {
	case u.Hostname() == "":
		return fail("has no host")
	case u.User != nil:
		return fail("holds a user name or password")
	case u.Fragment != "":
		return fail("holds a fragment")
	}
	return u, nil
}
