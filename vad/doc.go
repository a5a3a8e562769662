// Package vad finds where speech ends in a recording: it runs the Silero voice
// activity detector over 16 kHz mono audio and turns its probabilities into
// turns with a speech start, a speech end (SE) and the position at which a
// causal detector knows that the turn is over (EOS).
//
// The package is opinionated:
//
//   - Causal. Nothing looks ahead. A recording analysed as a whole is fed
//     window by window through the same [Detector] that takes live audio, so
//     both give the same turns by construction. That is why turns may be
//     computed before a session starts.
//   - The decision is apart from the model. [Turns] is a pure function of the
//     probabilities, so turns can be recomputed under any [Params] from a kept
//     [Result] without ONNX Runtime.
//   - ONNX Runtime is loaded at run time, when [Open] is called. A program that
//     imports this package builds and starts without it.
//   - Positions are audio positions, as [time.Duration] since the first sample.
//     All of them lie on the detector's grid of 32 ms. None is clamped: the
//     model lags the audio, so SE may lie past the last sample.
//
// # The rule
//
// It is the rule of VADIterator in the Silero project (src/silero_vad/utils_vad.py
// in github.com/snakers4/silero-vad), without padding. A window is 512 samples.
// A turn starts with the first window whose probability reaches Threshold. The
// first window below Threshold − 0.15 begins a silence, and SE is the start of
// that window. A window that reaches Threshold again cancels the silence; one in
// between changes nothing. The turn ends at the end of the first window that is
// below the lower threshold and lies at least MinSilence after the first silent
// one; that end is EOS.
//
// A turn counts only if SE − Start is longer than MinSpeech, as in that
// project's get_speech_timestamps; a turn of exactly MinSpeech does not. The
// test is made at EOS, when the length is known. A short turn was triggered all
// the same: until its EOS the rule was inside it, so it can neither be told from
// a real one earlier nor does it join its neighbours. Short turns are kept apart
// in [Result.Dropped].
//
// VADIterator applied to a finished file leaves a last turn open when the file
// ends in speech. In a session silence follows the recording, so the analysis
// appends zeros: first to fill the last window, then until the open turn ends.
//
// # Model
//
// Silero VAD version 5 takes 64 samples of context before each window, zeros
// before the first. The hash of the model file is part of every [Result],
// because model files of the same name differ.
package vad
