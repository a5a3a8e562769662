package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"sttbench/regular"
)

// Limits of [Decode]. They bound its memory at 4 bytes for each sample, 2.8 GB for
// four hours at 48 kHz, whatever a file says about itself.
const (
	MaxFileSize = 1 << 30       // bytes
	MaxDuration = 4 * time.Hour // an item is streamed in real time, so longer ones help nobody
	MinRate     = 8000          // Hz
	MaxRate     = 48000         // Hz
)

// Audio is mono sound.
//
// Samples are float32 in which full scale is −1 … 1, and not int16, for three
// reasons: integers of up to 24 bits and the mean of two of 16 bits are exact in
// it, so decoding never rounds; resampling rounds once, in PCM16LE, and not twice;
// and it is what the voice activity detector takes. Samples of a float file, and
// of resampled audio, may exceed full scale.
type Audio struct {
	Samples []float32
	Rate    int // Hz
}

// Duration returns the length of a, rounded down to a nanosecond; 0 for no samples.
func (a Audio) Duration() time.Duration {
	if len(a.Samples) == 0 {
		return 0
	}
	return time.Duration(int64(len(a.Samples)) * int64(time.Second) / int64(a.Rate))
}

// PCM16LE returns the samples as signed 16-bit integers, low byte first, the
// format that providers take. It rounds to nearest, ties to even, without dither;
// what exceeds full scale is set to full scale. Samples from a 16-bit mono file
// come out exactly as they stand there.
func (a Audio) PCM16LE() []byte {
	out := make([]byte, 2*len(a.Samples))
	for i, s := range a.Samples {
		v := math.RoundToEven(float64(s) * 32768)
		u := uint16(int16(max(-32768, min(32767, v))))
		out[2*i], out[2*i+1] = byte(u), byte(u>>8)
	}
	return out
}

// AudioError says that an audio file cannot be used.
type AudioError struct {
	Path string
	Err  error
}

// Error returns "file: message".
func (e *AudioError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *AudioError) Unwrap() error { return e.Err }

// Decode reads an audio file and mixes it to mono. The format is told by content:
//
//   - WAV: integers of 8, 16, 24 or 32 bits and floats of 32 bits, also under
//     WAVE_FORMAT_EXTENSIBLE;
//   - FLAC: 8 to 24 bits;
//   - MP3: MPEG-1 and MPEG-2 layer III. Encoder delay and padding are kept, as is
//     the silent first frame that holds a Xing or LAME header, so speech may stand
//     some tens of milliseconds later than in the original.
//
// Sample rates of 8 to 48 kHz and one or two channels are accepted; two are
// averaged, (left + right) / 2, so that no mix can clip. More channels are
// refused, since which of them holds the speech is not ours to guess.
//
// A WAV file is read up to its end where its header gives the length of the data
// as 0, as 0xFFFFFFFF or as more than there is: programs that stream leave that.
// The length in the RIFF header is ignored, and so is an incomplete last sample.
// Cut-off or damaged FLAC and MP3 files are errors.
//
// The error is an [*AudioError].
func Decode(path string) (Audio, error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return Audio{}, &AudioError{Path: path, Err: err}
	}
	defer f.Close()
	a, err := decode(f, size, MaxDuration)
	if err != nil {
		return Audio{}, &AudioError{Path: path, Err: regular.WithoutPath(err)}
	}
	return a, nil
}

// decode is Decode on size bytes of r, with a limit on the length of the audio.
//
// This is the one place where panics are recovered: the MP3 and FLAC libraries
// index out of range on some damaged files.
func decode(r io.ReaderAt, size int64, limit time.Duration) (a Audio, err error) {
	defer func() {
		if p := recover(); p != nil {
			a, err = Audio{}, fmt.Errorf("damaged file: the decoder failed: %v", p)
		}
	}()
	switch {
	case size == 0:
		return Audio{}, errors.New("the file is empty")
	case size > MaxFileSize:
		return Audio{}, fmt.Errorf("the file has %d bytes, more than the limit of %d", size, MaxFileSize)
	}
	start, err := skipID3(r, size)
	if err != nil {
		return Audio{}, err
	}
	magic := make([]byte, min(12, size-start))
	if _, err := r.ReadAt(magic, start); err != nil {
		return Audio{}, fmt.Errorf("reading the header: %w", err)
	}
	section := io.NewSectionReader(r, start, size-start)
	switch format := detect(magic); format {
	case "WAV":
		a, err = decodeWAV(section, limit)
	case "FLAC":
		a, err = decodeFLAC(section, limit)
	case "MP3":
		a, err = decodeMP3(section, limit)
	case "":
		return Audio{}, errors.New("not a WAV, FLAC or MP3 file")
	default:
		return Audio{}, fmt.Errorf("%s files are not supported: convert the file to WAV or FLAC", format)
	}
	if err != nil {
		return Audio{}, err
	}
	if len(a.Samples) == 0 {
		return Audio{}, errors.New("the file holds no audio: its header is followed by no samples")
	}
	return a, nil
}

// detect names the format that a file beginning with magic has, "" if unknown.
// Formats that cannot be decoded are told apart for the sake of the message.
func detect(magic []byte) string {
	at := func(i int, s string) bool { return len(magic) >= i && bytes.HasPrefix(magic[i:], []byte(s)) }
	switch {
	case at(0, "RIFF") && at(8, "WAVE"):
		return "WAV"
	case at(0, "RIFX"), at(0, "RF64"), at(0, "BW64"):
		return string(magic[:4])
	case at(0, "fLaC"):
		return "FLAC"
	case at(0, "OggS"):
		return "Ogg"
	case at(0, "FORM") && at(8, "AIF"):
		return "AIFF"
	case at(0, ".snd"):
		return "AU"
	case at(0, "#!AMR"):
		return "AMR"
	case at(4, "ftyp"):
		return "MP4"
	case at(0, "\x1a\x45\xdf\xa3"):
		return "WebM"
	case len(magic) >= 2 && magic[0] == 0xff && magic[1]&0xf6 == 0xf0:
		return "AAC" // ADTS: an MPEG sync word with layer 0
	case len(magic) >= 2 && magic[0] == 0xff && magic[1]&0xe0 == 0xe0:
		return "MP3"
	}
	return ""
}

// skipID3 returns the offset behind the ID3v2 tags at the start of r. The
// libraries would skip such a tag too, but one allocates what it claims to hold.
func skipID3(r io.ReaderAt, size int64) (int64, error) {
	var start int64
	for {
		var h [10]byte
		if size-start < int64(len(h)) {
			return start, nil
		}
		if _, err := r.ReadAt(h[:], start); err != nil {
			return 0, fmt.Errorf("reading the header: %w", err)
		}
		if string(h[:3]) != "ID3" {
			return start, nil
		}
		// The size has 28 bits in four bytes; flag 0x10 adds a footer (id3.org, ID3v2.4 §3.1).
		n := int64(h[6]&0x7f)<<21 | int64(h[7]&0x7f)<<14 | int64(h[8]&0x7f)<<7 | int64(h[9]&0x7f)
		n += int64(len(h))
		if h[5]&0x10 != 0 {
			n += int64(len(h))
		}
		if n >= size-start {
			return 0, fmt.Errorf("the ID3 tag at byte %d claims %d bytes, the file has %d: no audio follows", start, n, size-start)
		}
		start += n
	}
}

// checkRate refuses sample rates that are no speech audio.
func checkRate(rate int64) error {
	if rate < MinRate || rate > MaxRate {
		return fmt.Errorf("sample rate of %d Hz, want %d to %d", rate, MinRate, MaxRate)
	}
	return nil
}

// checkChannels refuses what cannot be mixed to mono without a guess.
func checkChannels(n int) error {
	if n < 1 || n > 2 {
		return fmt.Errorf("%d channels, want 1 or 2: extract the channel with the speech first", n)
	}
	return nil
}

// checkLength refuses audio of more than limit.
func checkLength(samples int64, rate int, limit time.Duration) error {
	if samples > int64(limit.Seconds()*float64(rate)) {
		return fmt.Errorf("more than %v of audio: split the file", limit)
	}
	return nil
}
