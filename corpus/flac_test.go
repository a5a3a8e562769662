package corpus

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// TestMain silences the standard logger, to which the FLAC library writes a line
// for each frame at 24 kHz.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

func newNoise() *rand.Rand { return rand.New(rand.NewPCG(5, 6)) }

// flacFile encodes channels, all of one length, in frames of up to 100 samples.
func flacFile(tb testing.TB, rate, bits int, assignment frame.Channels, pred frame.Pred, channels ...[]int32) []byte {
	tb.Helper()
	file := &bytes.Buffer{}
	enc, err := flac.NewEncoder(file, &meta.StreamInfo{
		BlockSizeMin: 16, BlockSizeMax: 100, SampleRate: uint32(rate), NChannels: uint8(len(channels)),
		BitsPerSample: uint8(bits), NSamples: uint64(len(channels[0])),
	})
	if err != nil {
		tb.Fatal(err)
	}
	enc.EnablePredictionAnalysis(false)
	for start := 0; start < len(channels[0]); start += 100 {
		end := min(start+100, len(channels[0]))
		f := &frame.Frame{Header: frame.Header{
			BlockSize: uint16(end - start), SampleRate: uint32(rate), Channels: assignment, BitsPerSample: uint8(bits),
		}}
		for _, c := range channels {
			f.Subframes = append(f.Subframes, &frame.Subframe{
				SubHeader: frame.SubHeader{Pred: pred}, Samples: slices.Clone(c[start:end]), NSamples: end - start,
			})
		}
		if err := enc.WriteFrame(f); err != nil {
			tb.Fatal(err)
		}
	}
	if err := enc.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

// noise returns n random samples of a width.
func noise(rng *rand.Rand, bits, n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(rng.IntN(1<<bits)) - 1<<(bits-1)
	}
	return s
}

func TestDecodeFLAC(t *testing.T) {
	rng := newNoise()
	for _, bits := range []int{8, 12, 16, 20, 24} {
		for _, assignment := range []frame.Channels{frame.ChannelsMono, frame.ChannelsLR, frame.ChannelsLeftSide, frame.ChannelsSideRight, frame.ChannelsMidSide} {
			t.Run(fmt.Sprintf("%d bits, channels %d", bits, assignment), func(t *testing.T) {
				channels := [][]int32{noise(rng, bits, 250), noise(rng, bits, 250)}[:assignment.Count()]
				want := make([]float32, 250)
				for i := range want {
					sum := 0.0
					for _, c := range channels {
						sum += float64(c[i])
					}
					want[i] = float32(sum / float64(len(channels)) / float64(int(1)<<(bits-1)))
				}
				a, err := decodeBytes(flacFile(t, 44100, bits, assignment, frame.PredVerbatim, channels...))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(Audio{Samples: want, Rate: 44100}, a); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestDecodeFLACRates(t *testing.T) {
	for _, rate := range []int{8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000} {
		a, err := decodeBytes(flacFile(t, rate, 16, frame.ChannelsMono, frame.PredConstant, make([]int32, 300)))
		if err != nil || a.Rate != rate || len(a.Samples) != 300 {
			t.Errorf("%d Hz: %d samples at %d Hz, %v", rate, len(a.Samples), a.Rate, err)
		}
	}
}

// The fields of the stream header that tests overwrite: STREAMINFO begins at
// byte 8 of the file (RFC 9639 §8.2).
const (
	flacRate    = 8 + 10 // 20 bits, then 3 bits channels − 1, 5 bits width − 1
	flacSamples = 8 + 13 // low 4 bits of this byte and the next four bytes
)

func TestDecodeFLACUnknownLength(t *testing.T) {
	file := flacFile(t, 16000, 16, frame.ChannelsMono, frame.PredVerbatim, noise(newNoise(), 16, 250))
	file[flacSamples] &= 0xf0
	copy(file[flacSamples+1:], "\x00\x00\x00\x00")
	a, err := decodeBytes(file)
	if err != nil || len(a.Samples) != 250 {
		t.Errorf("%d samples, %v, want all 250", len(a.Samples), err)
	}
}

// TestDecodeFLACWidthFromHeader clears the width in a frame, which then is that of
// the stream. The two checksums follow the frame header and the frame.
func TestDecodeFLACWidthFromHeader(t *testing.T) {
	want := noise(newNoise(), 16, 50)
	file := flacFile(t, 16000, 16, frame.ChannelsMono, frame.PredVerbatim, want)
	const start, header = 8 + 34, 6 // sync, sizes, channels and width, number, block size
	f := file[start:]
	f[3] &^= 0x0e
	f[header] = byte(crc(f[:header], 0x07, 8))
	sum := crc(f[:len(f)-2], 0x8005, 16)
	f[len(f)-2], f[len(f)-1] = byte(sum>>8), byte(sum)
	a, err := decodeBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range a.Samples {
		if v != float32(want[i])/32768 {
			t.Fatalf("sample %d is %v, want %v", i, v, float32(want[i])/32768)
		}
	}
}

// crc returns the checksum of b for a polynomial, bit by bit.
func crc(b []byte, poly uint, width int) uint {
	var c uint
	for _, v := range b {
		c ^= uint(v) << (width - 8)
		for range 8 {
			c <<= 1
			if c>>width&1 != 0 {
				c ^= poly
			}
			c &= 1<<width - 1
		}
	}
	return c
}

func TestDecodeBadFLAC(t *testing.T) {
	var (
		file    = flacFile(t, 16000, 16, frame.ChannelsMono, frame.PredVerbatim, noise(newNoise(), 16, 250))
		patched = func(i int, b ...byte) []byte {
			f := bytes.Clone(file)
			copy(f[i:], b)
			return f
		}
		three = flacFile(t, 16000, 16, frame.ChannelsLRC, frame.PredConstant, make([]int32, 20), make([]int32, 20), make([]int32, 20))
	)
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"magic only", file[:4], "damaged FLAC header: the file ends early"},
		{"header cut off", file[:30], "damaged FLAC header: the file ends early"},
		{"no frames", file[:42], "cut-off FLAC: the header announces 250 samples, the file has 0"},
		{"cut off in a frame", file[:len(file)-10], "damaged FLAC frame 2: the file ends early"},
		{"cut off between frames", file[:len(file)-len(lastFrame(file))], "cut-off FLAC: the header announces 250 samples, the file has 200"},
		{"more samples announced", patched(flacSamples+4, 251), "cut-off FLAC: the header announces 251 samples, the file has 250"},
		{"fewer samples announced", patched(flacSamples+4, 249), "cut-off FLAC: the header announces 249 samples, the file has 250"},
		{"changed sample", patched(100, file[100]^1), "damaged FLAC frame 0: "},
		{"0 Hz", patched(flacRate, 0, 0, 0), "damaged FLAC header: "},
		{"96 kHz", patched(flacRate, 0x17, 0x70, 0x00), "sample rate of 96000 Hz, want 8000 to 48000"},
		{"other rate than the frames", patched(flacRate, 0x05, 0xdc, 0x00), "damaged FLAC frame 0: rate, width or channels differ from the stream header"},
		{"three channels", three, "3 channels, want 1 or 2"},
		{"other channels than the frames", patched(flacRate+2, file[flacRate+2]|0x02), "damaged FLAC frame 0: rate, width or channels differ"},
		{"32 bits", patched(flacRate+2, file[flacRate+2]|1, 0xf0), "samples of 32 bits, want 8 to 24"},
		{"4 bits", patched(flacRate+2, file[flacRate+2]&^1, 0x30), "samples of 4 bits, want 8 to 24"},
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

// lastFrame returns the last frame of a file of 16-bit mono verbatim frames.
func lastFrame(file []byte) []byte {
	return file[bytes.LastIndex(file, []byte{0xff, 0xf9}):]
}

// TestDecodeFLACBomb checks that the limit holds for frames of a few bytes that
// stand for many samples.
func TestDecodeFLACBomb(t *testing.T) {
	in := flacFile(t, 8000, 8, frame.ChannelsMono, frame.PredConstant, make([]int32, 8100))
	if _, err := decode(bytes.NewReader(in), int64(len(in)), 1e9); err == nil || !strings.HasPrefix(err.Error(), "more than 1s of audio") {
		t.Errorf("error is %v for 8100 samples at 8 kHz, want a limit of 1s", err)
	}
}

func FuzzDecodeFLAC(f *testing.F) {
	f.Add(flacFile(f, 16000, 16, frame.ChannelsMono, frame.PredVerbatim, noise(newNoise(), 16, 30)))
	f.Add(flacFile(f, 8000, 8, frame.ChannelsMidSide, frame.PredVerbatim, noise(newNoise(), 8, 20), make([]int32, 20)))
	f.Add(flacFile(f, 48000, 24, frame.ChannelsMono, frame.PredConstant, make([]int32, 200)))
	f.Fuzz(func(t *testing.T, in []byte) { checkDecode(t, in, MaxRate*int(fuzzLimit.Seconds())) })
}
