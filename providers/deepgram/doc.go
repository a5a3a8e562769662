// Package deepgram speaks Deepgram's live protocol v1 (/v1/listen, the Nova
// models), as a dialect and as an emulator.
//
// A stream is configured by its URL alone, audio goes out as raw binary frames,
// and control messages are JSON text frames. The server cuts the audio into
// contiguous windows. An interim result replaces the one before it; a final
// result (is_final) locks its window, so the transcript is the finals joined
// with spaces. Empty finals are common and lock silence.
//
// The forced endpoint is {"type":"Finalize"}. Everything held becomes final, in
// one message or in several, the last of which carries from_finalize:true. That
// mark is the closing event, but Deepgram promises it in most cases only: it may
// come without text, and it may not come at all when there was little to decode.
// speech_final belongs to natural endpointing and is not set by Finalize.
//
// With forced endpointing the preset is interim_results=true&endpointing=false,
// which leaves turn ends to us; finals still come in mid-stream when a window
// grows too long. With natural endpointing it is interim_results=true alone:
// Deepgram's default endpointing, 10 ms of silence, is what its users get, and
// it ends utterances at the slightest pause.
//
// The newer protocol v2 (Flux) shares the host and nothing else; it is not
// spoken here.
package deepgram
