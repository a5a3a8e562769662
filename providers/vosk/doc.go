// Package vosk speaks the WebSocket protocol of vosk-server, the free
// recogniser of Alpha Cephei, and emulates that server on loopback.
//
// The protocol runs in lockstep: the server answers every message except the
// configuration with exactly one reply, in order, and no reply carries an id.
// The answer to a forced endpoint is therefore found by counting, never by its
// shape: replies to audio that was sent earlier may still be on their way.
//
// The forced endpoint is the text {"reset" : 1}, compared by the server as a
// string, blanks included. Only the Python CPU server (websocket/asr_server.py)
// knows it; the C++ server, the GPU server and old versions of the Python server
// close the connection with code 1011 instead.
//
// A server that answers too often or too seldom cannot be told from one that
// answers late, but for the replies that must be finals: a partial in their place
// is reported as a malformed frame, and the force stays without an answer.
//
// Facts were read in the source of vosk-server at c2e82f0 (2025-05-25) and of
// vosk-api at 9adbd76 (2026-02-22). The trailing silences that the server's own
// endpointing waits for belong to the model and are not documented.
package vosk
