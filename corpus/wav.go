package corpus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// WAV is read here and not with go-audio/wav, which serves as the oracle in the
// tests. Version 1.1.0 of it, with riff 1.0.0,
//
//   - allocates what the fmt chunk claims, up to 4 GiB;
//   - reads neither the sub-format of WAVE_FORMAT_EXTENSIBLE nor floats, which it
//     returns as integers;
//   - takes a data size of 0 or 0xFFFFFFFF, as streaming writers leave it, for no
//     data (the latter by wrapping to 0 when it adds the pad byte);
//   - returns the pad byte of an odd-sized data chunk as a sample.
//
// Source of the format: Microsoft, "Multimedia Programming Interface and Data
// Specifications 1.0" (1991), and mmreg.h for WAVEFORMATEXTENSIBLE.

const (
	tagPCM        = 0x0001
	tagFloat      = 0x0003
	tagExtensible = 0xfffe
)

// maxChunks bounds the chunks before the data; real files have a handful.
const maxChunks = 1000

// maxLevel is the largest sample of a float file, 24 dB above full scale. Overs
// of some dB happen; anything far beyond is a file whose floats are not
// normalised to 1, and would come out as noise.
const maxLevel = 16

type wavFormat struct {
	tag      uint16
	channels int
	rate     int
	bits     int // of one sample in the file
}

// frame returns the bytes of one sample of all channels.
func (f wavFormat) frame() int { return f.channels * f.bits / 8 }

func decodeWAV(r *io.SectionReader, limit time.Duration) (Audio, error) {
	format, data, err := readWAVHeader(r)
	if err != nil {
		return Audio{}, err
	}
	n := data.Size() / int64(format.frame())
	if err := checkLength(n, format.rate, limit); err != nil {
		return Audio{}, err
	}
	samples, err := readWAVSamples(data, format, int(n))
	return Audio{Samples: samples, Rate: format.rate}, err
}

// readWAVHeader walks over the chunks up to the data.
func readWAVHeader(r *io.SectionReader) (wavFormat, *io.SectionReader, error) {
	var (
		format    wavFormat
		hasFormat bool
		off       int64 = 12 // "RIFF", size, "WAVE"
	)
	for range maxChunks {
		if r.Size()-off < 8 {
			return format, nil, errors.New("the file ends in its header: there is no data chunk")
		}
		id, size, err := readChunkHeader(r, off)
		if err != nil {
			return format, nil, err
		}
		off += 8
		rest := r.Size() - off
		switch {
		case id == "data" && !hasFormat:
			return format, nil, errors.New("the data chunk comes before the fmt chunk")
		case id == "data":
			return format, io.NewSectionReader(r, off, dataSize(r, off, size)), nil
		case size > rest:
			return format, nil, fmt.Errorf("the chunk %q claims %d bytes, the file has %d more", id, size, rest)
		case id == "fmt ":
			if format, err = readFormat(r, off, size); err != nil {
				return format, nil, err
			}
			hasFormat = true
		}
		off += size + size&1 // chunks of odd size are followed by a pad byte
	}
	return format, nil, fmt.Errorf("more than %d chunks before the data", maxChunks)
}

func readChunkHeader(r io.ReaderAt, off int64) (id string, size int64, err error) {
	var h [8]byte
	if _, err := r.ReadAt(h[:], off); err != nil {
		return "", 0, fmt.Errorf("reading the header: %w", err)
	}
	return string(h[:4]), int64(binary.LittleEndian.Uint32(h[4:])), nil
}

// dataSize returns how many bytes of audio follow at off, where the header states
// size. A writer that streams leaves 0, 0xFFFFFFFF or some other large number:
// the audio then goes to the end of the file. But a 0 can also be true.
func dataSize(r *io.SectionReader, off, size int64) int64 {
	rest := r.Size() - off
	if size > rest || size == 0 && !onlyChunks(r, off) {
		return rest
	}
	return size
}

// onlyChunks reports whether r, from off to its end, is a series of well-formed
// chunks. Audio that looks like that by chance would need a chunk name of four
// printable characters followed by exactly the right size.
func onlyChunks(r *io.SectionReader, off int64) bool {
	for range maxChunks {
		if off == r.Size() {
			return true
		}
		if r.Size()-off < 8 {
			return false
		}
		id, size, err := readChunkHeader(r, off)
		if err != nil {
			return false
		}
		for _, c := range []byte(id) {
			if c < ' ' || c > '~' {
				return false
			}
		}
		off += 8 + size + size&1
	}
	return false
}

// readFormat reads a fmt chunk of size bytes at off and checks that its audio can
// be decoded.
func readFormat(r io.ReaderAt, off, size int64) (wavFormat, error) {
	if size < 16 {
		return wavFormat{}, fmt.Errorf("the fmt chunk has %d bytes, want 16 or more", size)
	}
	h := make([]byte, min(size, 40))
	if _, err := r.ReadAt(h, off); err != nil {
		return wavFormat{}, fmt.Errorf("reading the header: %w", err)
	}
	le := binary.LittleEndian
	f := wavFormat{
		tag:      le.Uint16(h),
		channels: int(le.Uint16(h[2:])),
		bits:     int(le.Uint16(h[14:])),
	}
	rate, align := int64(le.Uint32(h[4:])), int(le.Uint16(h[12:]))
	if f.tag == tagExtensible {
		// The sub-format is a GUID; those of the old tags differ in the first two bytes only.
		const guid = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
		if len(h) < 40 || string(h[26:40]) != guid {
			return wavFormat{}, errors.New("WAVE_FORMAT_EXTENSIBLE with an unknown sub-format: convert the file to 16-bit PCM")
		}
		f.tag = le.Uint16(h[24:])
	}
	if f.tag != tagPCM && f.tag != tagFloat {
		return wavFormat{}, fmt.Errorf("WAV with format tag 0x%04x (%s): only PCM and float are supported, convert the file to 16-bit PCM",
			f.tag, tagName(f.tag))
	}
	if err := checkChannels(f.channels); err != nil {
		return wavFormat{}, err
	}
	if err := checkRate(rate); err != nil {
		return wavFormat{}, err
	}
	f.rate = int(rate)
	switch {
	case f.tag == tagFloat && f.bits != 32:
		return wavFormat{}, fmt.Errorf("floats of %d bits, want 32", f.bits)
	case f.bits != 8 && f.bits != 16 && f.bits != 24 && f.bits != 32:
		return wavFormat{}, fmt.Errorf("samples of %d bits, want 8, 16, 24 or 32", f.bits)
	case align != f.frame():
		return wavFormat{}, fmt.Errorf("the fmt chunk contradicts itself: %d channels of %d bits in blocks of %d bytes", f.channels, f.bits, align)
	}
	return f, nil
}

// tagName names the format tags (mmreg.h) that speech files are met with.
func tagName(tag uint16) string {
	switch tag {
	case 0x0002:
		return "Microsoft ADPCM"
	case 0x0006:
		return "A-law"
	case 0x0007:
		return "mu-law"
	case 0x0011:
		return "IMA ADPCM"
	case 0x0031:
		return "GSM 6.10"
	case 0x0050:
		return "MPEG"
	case 0x0055:
		return "MP3"
	case 0x0161:
		return "Windows Media Audio"
	}
	return "unknown"
}

// readWAVSamples reads n samples of all channels.
func readWAVSamples(r io.Reader, f wavFormat, n int) ([]float32, error) {
	var (
		value   = sampleFunc(f)
		width   = f.bits / 8
		scale   = 1 / float64(f.channels)
		samples = make([]float32, 0, n) // n comes from the size of the file
		block   = make([]byte, 4096*f.frame())
	)
	for len(samples) < n {
		b := block[:min(len(block), (n-len(samples))*f.frame())]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("reading the samples: %w", err)
		}
		for ; len(b) > 0; b = b[f.frame():] {
			var sum float64
			for c := range f.channels {
				v := value(b[c*width:])
				// Also catches NaN, which compares false.
				if !(math.Abs(v) <= maxLevel) {
					return nil, fmt.Errorf("sample %d is %v, want a float of about -1 to 1", len(samples), v)
				}
				sum += v
			}
			samples = append(samples, float32(sum*scale))
		}
	}
	return samples, nil
}

// sampleFunc returns the function that reads one sample, full scale being 1.
func sampleFunc(f wavFormat) func([]byte) float64 {
	le := binary.LittleEndian
	switch {
	case f.tag == tagFloat:
		return func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case f.bits == 8: // the only unsigned width
		return func(b []byte) float64 { return (float64(b[0]) - 128) / (1 << 7) }
	case f.bits == 16:
		return func(b []byte) float64 { return float64(int16(le.Uint16(b))) / (1 << 15) }
	case f.bits == 24:
		return func(b []byte) float64 {
			return float64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 31)
		}
	default:
		return func(b []byte) float64 { return float64(int32(le.Uint32(b))) / (1 << 31) }
	}
}
