// Package openai speaks the transcription mode of the OpenAI Realtime API in its
// GA shape over WebSocket, and emulates it on loopback.
//
// The stream is configured by session.update after the server's session.created,
// and audio waits for session.updated: audio sent earlier was seen to be counted
// to a session without transcription. The forced endpoint is
// input_audio_buffer.commit; the server acknowledges it with the id of the new
// item and later completes that item. Text arrives per item: deltas extend it,
// the completed transcript replaces it.
//
// Two families of models behave differently. The streaming models
// (gpt-live-transcribe, gpt-realtime-whisper) send deltas while audio comes in,
// refuse any turn detection and never complete an item that was not committed.
// The others send nothing before a commit, which is theirs to make unless turn
// detection is switched off.
//
// The API takes PCM at 24 kHz only and cannot see that it was given anything
// else: other rates are just heard too fast or too slow. The URL must name the
// intent and no model, since a model makes a conversation session of it.
//
// Wire shapes were read in the vendor's Python SDK (types/realtime at e43b4224,
// 2026-08-21); behaviour that only others report is marked so in the sources of
// [Dialect.Describe]. The beta shape (header OpenAI-Beta, messages
// transcription_session.*) is refused by the vendor since about 2026-09-01 and is
// not spoken here.
package openai
