// Package providers holds the contract between the streamer and the vendors'
// wire protocols.
//
// A dialect is a pure codec: it turns audio and turn ends into frames, and
// frames into events. It owns no goroutine, no socket and no clock, and it never
// buffers: re-blocking to a vendor's chunk size, re-opening, keep-alive and
// deadlines are the streamer's. That is what makes every dialect testable with
// bytes alone, and every number reproducible from the record.
//
// One vendor is one folder below this one (dialect, emulator, frames, sources)
// and one line in package catalogue. The conformance suite in
// providers/conformance is what a new vendor has to pass.
package providers
