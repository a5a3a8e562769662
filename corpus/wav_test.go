package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-audio/audio"
	"github.com/go-audio/wav"
	"github.com/google/go-cmp/cmp"
)

// chunk returns a RIFF chunk, padded to an even size.
func chunk(id string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, len(data)&1)...)
}

// riff returns a WAV file of chunks.
func riff(chunks ...[]byte) []byte {
	body := append([]byte("WAVE"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// format returns the body of a fmt chunk.
func format(tag, channels, rate, bits int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(tag))
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*bits/8))
	b = le.AppendUint16(b, uint16(channels*bits/8))
	return le.AppendUint16(b, uint16(bits))
}

// extensible returns the body of a fmt chunk of WAVE_FORMAT_EXTENSIBLE.
func extensible(sub, channels, rate, bits int) []byte {
	b := format(tagExtensible, channels, rate, bits)
	b = append(b, 22, 0, byte(bits), 0, 3, 0, 0, 0, byte(sub), byte(sub>>8))
	return append(b, "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
}

// le returns values one after the other, low byte first.
func le(values ...any) []byte {
	var b []byte
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

// setSize overwrites the size of the last chunk with the given id.
func setSize(file []byte, id string, size uint32) []byte {
	file = bytes.Clone(file)
	binary.LittleEndian.PutUint32(file[bytes.LastIndex(file, []byte(id))+4:], size)
	return file
}

func decodeBytes(b []byte) (Audio, error) {
	return decode(bytes.NewReader(b), int64(len(b)), MaxDuration)
}

func TestDecodeWAV(t *testing.T) {
	var (
		mono16  = chunk("fmt ", format(tagPCM, 1, 16000, 16))
		samples = le(int16(0), int16(16384), int16(-32768))
		want    = []float32{0, 0.5, -1}
		plain   = riff(mono16, chunk("data", samples))
		tail    = chunk("LIST", []byte("INFOISFT"))
	)
	tests := []struct {
		name string
		in   []byte
		want []float32
		rate int
	}{
		{"16 bits", plain, want, 16000},
		{"8 bits are unsigned", riff(chunk("fmt ", format(tagPCM, 1, 8000, 8)), chunk("data", []byte{128, 192, 0, 255})),
			[]float32{0, 0.5, -1, 127.0 / 128}, 8000},
		{"24 bits", riff(chunk("fmt ", format(tagPCM, 1, 48000, 24)), chunk("data", []byte{0, 0, 0x40, 0, 0, 0x80, 1, 0, 0, 0xff, 0xff, 0xff})),
			[]float32{0.5, -1, 1.0 / (1 << 23), -1.0 / (1 << 23)}, 48000},
		{"32 bits", riff(chunk("fmt ", format(tagPCM, 1, 44100, 32)), chunk("data", le(int32(1<<30), int32(math.MinInt32)))),
			[]float32{0.5, -1}, 44100},
		{"float", riff(chunk("fmt ", format(tagFloat, 1, 22050, 32)), chunk("data", le(float32(0.25), float32(-1.5)))),
			[]float32{0.25, -1.5}, 22050},
		{"stereo is averaged", riff(chunk("fmt ", format(tagPCM, 2, 16000, 16)), chunk("data", le(int16(16384), int16(0), int16(32767), int16(-32767), int16(1), int16(0)))),
			[]float32{0.25, 0, 1.0 / 65536}, 16000},
		{"stereo float", riff(chunk("fmt ", format(tagFloat, 2, 16000, 32)), chunk("data", le(float32(1), float32(0.5)))),
			[]float32{0.75}, 16000},
		{"stereo 24 bits", riff(chunk("fmt ", format(tagPCM, 2, 16000, 24)), chunk("data", []byte{0, 0, 0x40, 0, 0, 0xc0, 0, 0, 0x40, 0, 0, 0})),
			[]float32{0, 0.25}, 16000},
		{"extensible PCM", riff(chunk("fmt ", extensible(tagPCM, 1, 16000, 16)), chunk("data", samples)), want, 16000},
		{"extensible float", riff(chunk("fmt ", extensible(tagFloat, 1, 16000, 32)), chunk("data", le(float32(0.125)))), []float32{0.125}, 16000},
		{"chunks before the data", riff(chunk("JUNK", make([]byte, 28)), chunk("bext", make([]byte, 603)), mono16, chunk("fact", le(uint32(3))), chunk("data", samples)), want, 16000},
		{"chunks after the data", riff(mono16, chunk("data", samples), tail), want, 16000},
		{"odd data with pad byte", riff(chunk("fmt ", format(tagPCM, 1, 8000, 8)), chunk("data", []byte{0, 192, 128}), tail), []float32{-1, 0.5, 0}, 8000},
		{"odd data, pad byte missing", riff(chunk("fmt ", format(tagPCM, 1, 8000, 8)), chunk("data", []byte{0, 192, 128})[:11]), []float32{-1, 0.5, 0}, 8000},
		{"fmt of 18 bytes", riff(chunk("fmt ", append(format(tagPCM, 1, 16000, 16), 0, 0)), chunk("data", samples)), want, 16000},
		{"data size 0", setSize(plain, "data", 0), want, 16000},
		{"data size 0xFFFFFFFF", setSize(plain, "data", 0xffffffff), want, 16000},
		{"data size too large", setSize(plain, "data", 0x7fffffdb), want, 16000},
		{"data cut off in a sample", plain[:len(plain)-1], want[:2], 16000},
		{"RIFF size 0", setSize(plain, "RIFF", 0), want, 16000},
		{"RIFF size too large", setSize(plain, "RIFF", 0xffffffff), want, 16000},
		{"data size 0 before zeros", setSize(riff(mono16, chunk("data", make([]byte, 16))), "data", 0), make([]float32, 8), 16000},
		{"ID3 tag before RIFF", append([]byte("ID3\x04\x00\x00\x00\x00\x00\x02xx"), plain...), want, 16000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeBytes(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Audio{Samples: tt.want, Rate: tt.rate}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeBadWAV(t *testing.T) {
	var (
		mono16 = chunk("fmt ", format(tagPCM, 1, 16000, 16))
		data   = chunk("data", le(int16(1), int16(2)))
		plain  = riff(mono16, data)
		with   = func(body []byte) []byte { return riff(chunk("fmt ", body), data) }
		float  = func(v ...float32) []byte {
			return riff(chunk("fmt ", format(tagFloat, 2, 16000, 32)), chunk("data", le(v)))
		}
		nan, inf = float32(math.NaN()), float32(math.Inf(-1))
	)
	badAlign := format(tagPCM, 1, 16000, 16)
	badAlign[12] = 4
	badGUID := extensible(tagPCM, 1, 16000, 16)
	badGUID[39]++
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"one byte", []byte("R"), "not a WAV, FLAC or MP3 file"},
		{"text", []byte("hello, this is no audio"), "not a WAV, FLAC or MP3 file"},
		{"RIFF only", []byte("RIFF"), "not a WAV, FLAC or MP3 file"},
		{"AVI", []byte("RIFF\x00\x00\x00\x00AVI LIST"), "not a WAV, FLAC or MP3 file"},
		{"big-endian", []byte("RIFX\x00\x00\x00\x00WAVE"), "RIFX files are not supported"},
		{"RF64", []byte("RF64\xff\xff\xff\xffWAVEds64"), "RF64 files are not supported"},
		{"Ogg", []byte("OggS\x00\x02"), "Ogg files are not supported: convert the file to WAV or FLAC"},
		{"MP4", []byte("\x00\x00\x00\x20ftypM4A "), "MP4 files are not supported"},
		{"AAC", []byte("\xff\xf1\x50\x80"), "AAC files are not supported"},
		{"AIFF", []byte("FORM\x00\x00\x00\x00AIFF"), "AIFF files are not supported"},
		{"header cut off", plain[:12], "the file ends in its header: there is no data chunk"},
		{"fmt cut off", plain[:30], `the chunk "fmt " claims 16 bytes, the file has 10 more`},
		{"no data chunk", riff(mono16), "the file ends in its header: there is no data chunk"},
		{"data before fmt", riff(data, mono16), "the data chunk comes before the fmt chunk"},
		{"fmt too small", riff(chunk("fmt ", make([]byte, 14)), data), "the fmt chunk has 14 bytes, want 16 or more"},
		{"absurd chunk size", setSize(riff(chunk("LIST", nil), mono16, data), "LIST", 0xfffffff0), `the chunk "LIST" claims 4294967280 bytes, the file has 36 more`},
		{"absurd fmt size", setSize(plain, "fmt ", 0xffffffff), `the chunk "fmt " claims 4294967295 bytes, the file has 28 more`},
		{"endless chunks", riff(bytes.Repeat(chunk("junk", nil), 2000)), "more than 1000 chunks before the data"},
		{"zero-length data", riff(mono16, chunk("data", nil)), "the file holds no audio"},
		{"zero-length data before a chunk", riff(mono16, chunk("data", nil), chunk("LIST", []byte("INFOISFT"))), "the file holds no audio"},
		{"less than one sample", riff(mono16, chunk("data", []byte{1})), "the file holds no audio"},
		{"0 Hz", with(format(tagPCM, 1, 0, 16)), "sample rate of 0 Hz, want 8000 to 48000"},
		{"96 kHz", with(format(tagPCM, 1, 96000, 16)), "sample rate of 96000 Hz, want 8000 to 48000"},
		{"4 GHz", with(format(tagPCM, 1, 0xffffffff, 16)), "sample rate of 4294967295 Hz"},
		{"no channels", with(format(tagPCM, 0, 16000, 16)), "0 channels, want 1 or 2"},
		{"three channels", with(format(tagPCM, 3, 16000, 16)), "3 channels, want 1 or 2: extract the channel with the speech first"},
		{"0 bits", with(format(tagPCM, 1, 16000, 0)), "samples of 0 bits, want 8, 16, 24 or 32"},
		{"12 bits", with(format(tagPCM, 1, 16000, 12)), "samples of 12 bits"},
		{"64-bit float", with(format(tagFloat, 1, 16000, 64)), "floats of 64 bits, want 32"},
		{"16-bit float", with(format(tagFloat, 1, 16000, 16)), "floats of 16 bits, want 32"},
		{"block size", with(badAlign), "the fmt chunk contradicts itself: 1 channels of 16 bits in blocks of 4 bytes"},
		{"Microsoft ADPCM", with(format(2, 1, 16000, 4)), "WAV with format tag 0x0002 (Microsoft ADPCM): only PCM and float are supported"},
		{"mu-law", with(format(7, 1, 8000, 8)), "WAV with format tag 0x0007 (mu-law)"},
		{"A-law, extensible", with(extensible(6, 1, 8000, 8)), "WAV with format tag 0x0006 (A-law)"},
		{"unknown tag", with(format(0x1234, 1, 8000, 8)), "WAV with format tag 0x1234 (unknown)"},
		{"unknown sub-format", with(badGUID), "WAVE_FORMAT_EXTENSIBLE with an unknown sub-format"},
		{"extensible without its extension", with(format(tagExtensible, 1, 16000, 16)), "WAVE_FORMAT_EXTENSIBLE with an unknown sub-format"},
		{"NaN", float(0, 0, 0, 0, 0, nan), "sample 2 is NaN"},
		{"infinite", float(0, 0, inf, 0), "sample 1 is -Inf"},
		{"floats not normalised", float(0, 0, 0, 0, 32767, 0), "sample 2 is 32767, want a float of about -1 to 1"},
		{"ID3 tag only", []byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7f12"), "the ID3 tag at byte 0 claims 268435465 bytes, the file has 12: no audio follows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeBytes(tt.in)
			if err == nil {
				t.Fatalf("no error, got %d samples", len(got.Samples))
			}
			if !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, tt.want)
			}
			if got.Samples != nil {
				t.Errorf("%d samples beside the error", len(got.Samples))
			}
		})
	}
}

func TestDecodeTooLong(t *testing.T) {
	in := riff(chunk("fmt ", format(tagPCM, 1, 8000, 8)), chunk("data", make([]byte, 8001)))
	if _, err := decode(bytes.NewReader(in), int64(len(in)), 1e9); err == nil || !strings.HasPrefix(err.Error(), "more than 1s of audio") {
		t.Errorf("error is %v for 8001 samples at 8 kHz, want a limit of 1s", err)
	}
	if _, err := decode(bytes.NewReader(in), int64(len(in)-2), 1e9); err != nil {
		t.Errorf("exactly one second: %v", err)
	}
	if _, err := decode(bytes.NewReader(in), MaxFileSize+1, 1e9); err == nil || !strings.Contains(err.Error(), "more than the limit of") {
		t.Errorf("error is %v for a file above MaxFileSize", err)
	}
}

// TestDecodeWAVAgainstGoAudio decodes what another library has encoded.
func TestDecodeWAVAgainstGoAudio(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, bits := range []int{8, 16, 24, 32} {
		for channels := 1; channels <= 2; channels++ {
			t.Run(fmt.Sprintf("%d bits, %d channels", bits, channels), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "a.wav")
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				buf := &audio.IntBuffer{
					Format:         &audio.Format{NumChannels: channels, SampleRate: 22050},
					SourceBitDepth: bits,
					Data:           make([]int, 999*channels),
				}
				want := make([]float32, 999)
				full := 1 << (bits - 1)
				for i := range want {
					sum := 0
					for c := range channels {
						v := rng.IntN(2*full) - full
						sum += v
						if bits == 8 {
							v += 128
						}
						buf.Data[i*channels+c] = v
					}
					want[i] = float32(float64(sum) / float64(channels*full))
				}
				enc := wav.NewEncoder(f, 22050, bits, channels, 1)
				if err := enc.Write(buf); err != nil {
					t.Fatal(err)
				}
				if err := enc.Close(); err != nil {
					t.Fatal(err)
				}
				got, err := Decode(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(Audio{Samples: want, Rate: 22050}, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestDecodeWAVSixteenBitsExact checks that all 65,536 values survive the way to
// float and back.
func TestDecodeWAVSixteenBitsExact(t *testing.T) {
	pcm := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(pcm[2*i:], uint16(i))
	}
	a, err := decodeBytes(riff(chunk("fmt ", format(tagPCM, 1, 16000, 16)), chunk("data", pcm)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.PCM16LE(), pcm) {
		t.Error("16-bit samples changed")
	}
}

func FuzzDecodeWAV(f *testing.F) {
	data := chunk("data", le(int16(1), int16(-2), int16(3), int16(4)))
	f.Add(riff(chunk("fmt ", format(tagPCM, 1, 16000, 16)), data))
	f.Add(riff(chunk("fmt ", extensible(tagFloat, 2, 48000, 32)), chunk("data", le(float32(1), float32(2)))))
	f.Add(riff(chunk("JUNK", make([]byte, 3)), chunk("fmt ", format(tagPCM, 2, 8000, 24)), setSize(data, "data", 0)))
	f.Add(riff(chunk("fmt ", format(tagPCM, 1, 8000, 8)), chunk("data", nil), chunk("LIST", make([]byte, 5))))
	f.Add([]byte("ID3\x04\x00\x10\x00\x00\x00\x01xRIFF\x00\x00\x00\x00WAVEfmt "))
	f.Fuzz(func(t *testing.T, in []byte) { checkDecode(t, in, len(in)) })
}

// checkDecode decodes in and checks what must hold for every input.
func checkDecode(t *testing.T, in []byte, maxSamples int) {
	a, err := decode(bytes.NewReader(in), int64(len(in)), fuzzLimit)
	if err != nil {
		if a.Samples != nil {
			t.Error("samples beside an error")
		}
		return
	}
	if a.Rate < MinRate || a.Rate > MaxRate {
		t.Errorf("rate of %d Hz", a.Rate)
	}
	if n := len(a.Samples); n == 0 || n > maxSamples || a.Duration() > fuzzLimit {
		t.Errorf("%d samples, %v from %d bytes", n, a.Duration(), len(in))
	}
	for i, s := range a.Samples {
		if !(math.Abs(float64(s)) <= maxLevel) {
			t.Fatalf("sample %d is %v", i, s)
		}
	}
	a.PCM16LE()
}
