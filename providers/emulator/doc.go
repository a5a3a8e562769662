// Package emulator is a loopback server that plays any speech-to-text vendor,
// so that the whole harness can be tested, and its own error measured, without
// a vendor, a key or a network.
//
// The package knows nothing of any protocol. A [Vendor] (one per vendor folder)
// judges the handshake and makes a [Stream] per connection, which reads client
// messages, tells the core through its [Call] what they mean (audio, a forced
// endpoint, the end), and puts what the recogniser says into vendor messages.
// The core owns everything else: the script, audio positions, delays, natural
// endpointing, recognition errors, faults, and the truth log.
//
// Emulators share no message type with the dialects they are tested against:
// an error made once must not cancel itself out.
//
// # Recognition
//
// The recogniser speaks a [Script]: words with their end times in the audio. With
// a [Manifest] it finds the script of each session by the session's sound. It
// counts the audio it received; a word is heard when the audio up to its end has
// arrived, and shows up in partials once the audio is a further partial lag
// ahead. Everything natural (partials, endpoints, window limits) happens in
// audio time, on the arrival of audio, with that lag. Only a forced endpoint is
// answered in real time: all words heard at the instant of the force become
// final, and the answer leaves one final delay after the force was received.
//
// # Faults
//
// Faults ([FaultDocs]) can be armed together. Those that break a stream at the
// same moment do so in this order: reset, abrupt-close, close, half-open. What
// they draw at random comes from the server's seed.
//
// # Keys
//
// Emulators accept every key that is not empty and does not begin with "bad";
// see [GoodKey].
package emulator
