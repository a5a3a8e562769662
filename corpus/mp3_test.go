package corpus

import (
	"bytes"
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"testing"
)

// bitWriter writes numbers of any width, highest bit first.
type bitWriter struct {
	b    []byte
	free int // bits left in the last byte
}

func (w *bitWriter) write(v uint, bits int) {
	for i := bits - 1; i >= 0; i-- {
		if w.free == 0 {
			w.b, w.free = append(w.b, 0), 8
		}
		w.free--
		w.b[len(w.b)-1] |= byte(v>>i&1) << w.free
	}
}

// mp3Layout is the stream of which mp3Frame makes a frame.
type mp3Layout struct {
	mpeg2   bool
	stereo  bool
	rate    uint // index of the sample rate
	bitrate uint // index of the bit rate
	padding uint
	line    uint // the even frequency line that sounds, in every channel
}

// mp3Frame encodes one frame in which a single line of the spectrum is not zero.
// The only entropy code needed is Huffman table 1 (ISO/IEC 11172-3, table B.7):
// "1" is the pair 0, 0 and "01" followed by a sign the pair ±1, 0.
func mp3Frame(l mp3Layout) []byte {
	granules, channels := 2, 1
	if l.mpeg2 {
		granules = 1
	}
	if l.stereo {
		channels = 2
	}
	var w bitWriter
	w.write(0x7ff, 11) // sync
	if l.mpeg2 {
		w.write(2, 2)
	} else {
		w.write(3, 2)
	}
	w.write(1, 2) // layer III
	w.write(1, 1) // no CRC
	w.write(l.bitrate, 4)
	w.write(l.rate, 2)
	w.write(l.padding, 1)
	w.write(0, 1) // private
	if l.stereo {
		w.write(0, 2)
	} else {
		w.write(3, 2)
	}
	w.write(0, 6) // mode extension, copyright, original, emphasis

	// Side information: no bit reservoir, private bits and scfsi 0.
	switch {
	case l.mpeg2:
		w.write(0, 8+channels)
	case l.stereo:
		w.write(0, 9+3+8)
	default:
		w.write(0, 9+5+4)
	}
	pairs := l.line / 2
	for range granules * channels {
		w.write(pairs+3, 12) // bits of main data
		w.write(pairs+1, 9)  // big values
		w.write(196, 8)      // global gain
		if l.mpeg2 {
			w.write(0, 9) // scale factors of no bits
		} else {
			w.write(0, 4)
		}
		w.write(0, 1)             // no window switching
		w.write(1<<10|1<<5|1, 15) // table 1 in all regions
		w.write(0, 4+3)           // region sizes
		if !l.mpeg2 {
			w.write(0, 1) // preflag
		}
		w.write(0, 2) // scale, table of the small values
	}
	for range granules * channels {
		w.write(1<<pairs-1, int(pairs))
		w.write(0b010, 3)
	}
	h, err := mp3SizeOf(w.b)
	if err != nil {
		panic(err)
	}
	return append(w.b, make([]byte, h-len(w.b))...)
}

// mp3SizeOf computes the size of a frame by the formula of ISO/IEC 11172-3 in
// floating point, apart from the code under test.
func mp3SizeOf(b []byte) (int, error) {
	kbps, slots, rates := []float64{32: 0}, 144.0, []float64{44100, 48000, 32000}
	if b[1]>>3&3 == 3 {
		copy(kbps, []float64{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320})
	} else {
		copy(kbps, []float64{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160})
		slots, rates = 72, []float64{22050, 24000, 16000}
	}
	if b[2]>>2&3 == 3 {
		return 0, fmt.Errorf("reserved rate")
	}
	return int(slots*1000*kbps[b[2]>>4]/rates[b[2]>>2&3]) + int(b[2]>>1&1), nil
}

// mp3File returns n frames.
func mp3File(l mp3Layout, n int) []byte { return bytes.Repeat(mp3Frame(l), n) }

// amplitude returns how strong s is at freq, weighed by a Hann window.
func amplitude(s []float64, freq, rate float64) float64 {
	var sum complex128
	turn, phase := cmplx.Rect(1, 2*math.Pi*freq/rate), complex128(1)
	for _, v := range s {
		sum += phase * complex(v, 0)
		phase *= turn
	}
	return 4 * cmplx.Abs(sum) / float64(len(s))
}

// hann returns the samples under a Hann window.
func hann(samples []float32) []float64 {
	s := make([]float64, len(samples))
	for i, v := range samples {
		s[i] = float64(v) * (1 - math.Cos(2*math.Pi*float64(i)/float64(len(s)))) / 2
	}
	return s
}

func TestDecodeMP3(t *testing.T) {
	tests := []struct {
		name    string
		layout  mp3Layout
		rate    int
		samples int // per frame
	}{
		{"MPEG-1 mono 44.1 kHz", mp3Layout{bitrate: 5, rate: 0, line: 40}, 44100, 1152},
		{"MPEG-1 mono, padded", mp3Layout{bitrate: 5, rate: 0, line: 40, padding: 1}, 44100, 1152},
		{"MPEG-1 stereo 48 kHz", mp3Layout{bitrate: 9, rate: 1, line: 60, stereo: true}, 48000, 1152},
		{"MPEG-1 mono 32 kHz", mp3Layout{bitrate: 5, rate: 2, line: 20}, 32000, 1152},
		{"MPEG-2 mono 16 kHz", mp3Layout{mpeg2: true, bitrate: 4, rate: 2, line: 50}, 16000, 576},
		{"MPEG-2 stereo 24 kHz", mp3Layout{mpeg2: true, bitrate: 8, rate: 1, line: 30, stereo: true}, 24000, 576},
		{"MPEG-2 mono 22.05 kHz", mp3Layout{mpeg2: true, bitrate: 6, rate: 0, line: 30}, 22050, 576},
		{"MPEG-2 mono 22.05 kHz, padded", mp3Layout{mpeg2: true, bitrate: 6, rate: 0, line: 30, padding: 1}, 22050, 576},
	}
	const frames = 8
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := decodeBytes(mp3File(tt.layout, frames))
			if err != nil {
				t.Fatal(err)
			}
			if a.Rate != tt.rate || len(a.Samples) != frames*tt.samples {
				t.Fatalf("%d samples at %d Hz, want %d at %d", len(a.Samples), a.Rate, frames*tt.samples, tt.rate)
			}
			// The line of number k is centred on (k + ½)/576 of the Nyquist frequency.
			width := float64(tt.rate) / 2 / 576
			strongest, at := 0.0, 0.0
			windowed := hann(a.Samples)
			for f := width; f < float64(tt.rate)/2; f += width / 2 {
				if v := amplitude(windowed, f, float64(tt.rate)); v > strongest {
					strongest, at = v, f
				}
			}
			if want := (float64(tt.layout.line) + 0.5) * width; math.Abs(at-want) > width || strongest < 0.01 {
				t.Errorf("strongest at %.0f Hz with %.4f, want a tone near %.0f Hz", at, strongest, want)
			}
		})
	}
}

// TestDecodeMP3StereoEqualsMono checks that two equal channels sound as one.
func TestDecodeMP3StereoEqualsMono(t *testing.T) {
	mono, err := decodeBytes(mp3File(mp3Layout{bitrate: 5, line: 40}, 4))
	if err != nil {
		t.Fatal(err)
	}
	stereo, err := decodeBytes(mp3File(mp3Layout{bitrate: 9, line: 40, stereo: true}, 4))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mono.PCM16LE(), stereo.PCM16LE()) {
		t.Error("the mean of two equal channels differs from the channel")
	}
}

func TestDecodeMP3Tags(t *testing.T) {
	file := mp3File(mp3Layout{bitrate: 5, line: 40}, 3)
	want, err := decodeBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	id3 := append([]byte("ID3\x04\x00\x00\x00\x00\x01\x05"), make([]byte, 133)...)
	footer := []byte("ID3\x04\x00\x10\x00\x00\x00\x01x3DI\x04\x00\x10\x00\x00\x00\x01")
	for name, in := range map[string][]byte{
		"ID3v2":             append(bytes.Clone(id3), file...),
		"two ID3v2":         append(append(bytes.Clone(id3), id3...), file...),
		"ID3v2 with footer": append(footer, file...),
		"ID3v1":             append(bytes.Clone(file), append([]byte("TAG"), make([]byte, 125)...)...),
		"APE":               append(bytes.Clone(file), "APETAGEX and so on"...),
		"zeros":             append(bytes.Clone(file), make([]byte, 5000)...),
	} {
		got, err := decodeBytes(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(want.PCM16LE(), got.PCM16LE()) {
			t.Errorf("%s changes the audio", name)
		}
	}
}

func TestDecodeBadMP3(t *testing.T) {
	var (
		frame   = mp3Frame(mp3Layout{bitrate: 5, line: 40})
		file    = bytes.Repeat(frame, 3)
		patched = func(i int, b byte) []byte {
			f := bytes.Clone(file)
			f[len(frame)+i] = b
			return f
		}
		other = mp3Frame(mp3Layout{bitrate: 5, rate: 1, line: 40})
	)
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"sync only", []byte{0xff, 0xfb}, "damaged MP3: frame 0 at byte 0: no frame header"},
		{"header only", frame[:4], "cut-off MP3: frame 0 at byte 0 has 208 bytes, the file has 4 more"},
		{"cut off", file[:len(file)-1], "cut-off MP3: frame 2 at byte 416 has 208 bytes, the file has 207 more"},
		{"lost sync", patched(0, 0), "damaged MP3: frame 1 at byte 208: no frame header"},
		{"bytes between frames", append(append(bytes.Clone(frame), 1, 2, 3), frame...), "damaged MP3: frame 1 at byte 208: no frame header"},
		{"text at the end", append(bytes.Clone(file), "garbage"...), "damaged MP3: frame 3 at byte 624: no frame header"},
		{"rate changes", append(bytes.Clone(frame), other...), "the sample rate changes from 44100 to 48000 Hz in MP3 frame 1"},
		{"MPEG-2.5", patched(1, 0xe3), "damaged MP3: frame 1 at byte 208: MPEG-2.5 (8 to 12 kHz) is not supported"},
		{"layer II", patched(1, 0xfd), "damaged MP3: frame 1 at byte 208: MPEG layer I or II, want layer III"},
		{"free format", patched(2, 0x00), "damaged MP3: frame 1 at byte 208: free-format bit rate is not supported"},
		{"reserved rate", patched(2, 0x5c), "damaged MP3: frame 1 at byte 208: no frame header"},
		{"size that go-mp3 gets wrong", mp3File(mp3Layout{mpeg2: true, bitrate: 4, line: 4, padding: 1}, 3),
			"damaged MP3: frame 0 at byte 0: padded MPEG-2 frames of 32 kbit/s at 22050 Hz are not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := decodeBytes(tt.in)
			if err == nil {
				t.Fatalf("no error, got %d samples", len(a.Samples))
			}
			if !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, tt.want)
			}
		})
	}
}

// TestDecodeMP3Noise feeds frames with valid headers and random contents, on which
// the library panics now and then.
func TestDecodeMP3Noise(t *testing.T) {
	rng := newNoise()
	failed := 0
	for range 100 {
		file := mp3File(mp3Layout{bitrate: 9, line: 4, stereo: true}, 4)
		size := len(file) / 4
		for i := range file {
			if i%size >= 4 {
				file[i] = byte(rng.Uint32())
			}
		}
		if _, err := decodeBytes(file); err != nil {
			failed++
			if !strings.HasPrefix(err.Error(), "damaged") {
				t.Errorf("error is %v, want one that says damaged", err)
			}
		}
	}
	t.Logf("%d of 100 files failed", failed)
}

func FuzzDecodeMP3(f *testing.F) {
	f.Add(mp3File(mp3Layout{bitrate: 5, line: 40}, 2))
	f.Add(mp3File(mp3Layout{bitrate: 9, line: 8, stereo: true, rate: 1}, 2))
	f.Add(mp3File(mp3Layout{mpeg2: true, bitrate: 1, rate: 2, line: 8}, 3))
	f.Add(append([]byte("ID3\x04\x00\x00\x00\x00\x00\x02xx"), append(mp3Frame(mp3Layout{bitrate: 1, line: 2}), "TAG"...)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		// The smallest frame has 24 bytes (8 kbit/s at 24 kHz) for 576 samples.
		checkDecode(t, in, max(len(in), len(in)*576/24))
	})
}
