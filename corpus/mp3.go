package corpus

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	mp3 "github.com/hajimehoshi/go-mp3"
)

// decodeMP3 decodes with go-mp3, after a walk over the frame headers of its own.
// go-mp3 searches for the next thing that looks like a header wherever it does
// not find one, and takes the end of the file in a frame for the end of the
// audio, so damage would only show as audio that is shorter than it was.
func decodeMP3(r *io.SectionReader, limit time.Duration) (Audio, error) {
	s, err := scanMP3(r, limit)
	if err != nil {
		return Audio{}, err
	}
	// Not a Seeker, so that go-mp3 does not read all of it ahead of decoding.
	dec, err := mp3.NewDecoder(bufio.NewReader(io.NewSectionReader(r, 0, s.end)))
	if err != nil {
		return Audio{}, fmt.Errorf("damaged MP3: %w", noEOF(err))
	}
	a := Audio{Samples: make([]float32, 0, s.frames*s.samples), Rate: s.rate}
	buf := make([]byte, 4*s.samples) // always two channels of 16 bits; mono is doubled
	for n := range s.frames {
		if _, err := io.ReadFull(dec, buf); err != nil {
			return Audio{}, fmt.Errorf("damaged MP3 frame %d: %w", n, noEOF(err))
		}
		for i := 0; i < len(buf); i += 4 {
			left := int16(binary.LittleEndian.Uint16(buf[i:]))
			right := int16(binary.LittleEndian.Uint16(buf[i+2:]))
			a.Samples = append(a.Samples, float32(int32(left)+int32(right))/(1<<16))
		}
	}
	return a, nil
}

// mp3Scan is what the frame headers of a file say.
type mp3Scan struct {
	rate    int
	samples int   // in each frame
	frames  int   // all of them complete
	end     int64 // offset behind the last
}

// scanMP3 walks from frame to frame and checks that they follow each other
// without a gap and agree with the first.
func scanMP3(r *io.SectionReader, limit time.Duration) (mp3Scan, error) {
	var s mp3Scan
	br := bufio.NewReader(io.NewSectionReader(r, 0, r.Size()))
	for s.end < r.Size() {
		h, err := readMP3Header(br)
		if errors.Is(err, errNoSync) && s.frames > 0 && isTrailer(br) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("damaged MP3: frame %d at byte %d: %w", s.frames, s.end, err)
		}
		if s.frames == 0 {
			s.rate, s.samples = h.rate, h.samples
		}
		switch {
		case h.rate != s.rate:
			return s, fmt.Errorf("the sample rate changes from %d to %d Hz in MP3 frame %d", s.rate, h.rate, s.frames)
		case h.size > r.Size()-s.end:
			return s, fmt.Errorf("cut-off MP3: frame %d at byte %d has %d bytes, the file has %d more", s.frames, s.end, h.size, r.Size()-s.end)
		}
		if _, err := br.Discard(int(h.size)); err != nil {
			return s, fmt.Errorf("reading MP3 frame %d: %w", s.frames, err)
		}
		s.frames++
		s.end += h.size
		if err := checkLength(int64(s.frames*s.samples), s.rate, limit); err != nil {
			return s, err
		}
	}
	return s, nil
}

type mp3Header struct {
	rate    int   // Hz
	samples int   // in the frame, of each channel
	size    int64 // bytes, header included
}

var errNoSync = errors.New("no frame header")

// readMP3Header reads the header at the start of br without consuming it.
// Source: ISO/IEC 11172-3 §2.4.1.3 and, for half the sample rates, 13818-3 §2.4.1.
func readMP3Header(br *bufio.Reader) (mp3Header, error) {
	b, err := br.Peek(4)
	if err != nil && err != io.EOF {
		return mp3Header{}, err
	}
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return mp3Header{}, errNoSync
	}
	var (
		version = b[1] >> 3 & 3 // 3: MPEG-1, 2: MPEG-2, 0: MPEG-2.5
		layer   = b[1] >> 1 & 3 // 3: I, 2: II, 1: III
		bitrate = b[2] >> 4
		rate    = b[2] >> 2 & 3
		padding = int64(b[2] >> 1 & 1)
	)
	switch {
	case version == 1, layer == 0, bitrate == 15, rate == 3:
		return mp3Header{}, errNoSync
	case version == 0:
		return mp3Header{}, errors.New("MPEG-2.5 (8 to 12 kHz) is not supported: convert the file to WAV")
	case layer != 1:
		return mp3Header{}, errors.New("MPEG layer I or II, want layer III: convert the file to WAV")
	case bitrate == 0:
		return mp3Header{}, errors.New("free-format bit rate is not supported: convert the file to WAV")
	}
	if version == 3 {
		kbps := [15]int64{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}[bitrate]
		h := mp3Header{rate: [3]int{44100, 48000, 32000}[rate], samples: 1152}
		h.size = 144*1000*kbps/int64(h.rate) + padding
		return h, nil
	}
	kbps := [15]int64{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}[bitrate]
	h := mp3Header{rate: [3]int{22050, 24000, 16000}[rate], samples: 576}
	h.size = 72*1000*kbps/int64(h.rate) + padding
	// go-mp3 0.3.4 takes (144·kbps/rate + padding) / 2 for the size. Where that is a
	// byte too small it loses a byte of each such frame and then reads later frames,
	// which refer back to it, from a wrong bit.
	if wrong := (144*1000*kbps/int64(h.rate) + padding) / 2; wrong != h.size {
		return mp3Header{}, fmt.Errorf("padded MPEG-2 frames of %d kbit/s at %d Hz are not supported: convert the file to WAV", kbps, h.rate)
	}
	return h, nil
}

// isTrailer reports whether nothing but a tag or zeros is left in br.
func isTrailer(br *bufio.Reader) bool {
	head, _ := br.Peek(8)
	for _, tag := range []string{"TAG", "APETAGEX", "LYRICSBE", "ID3", "3DI"} {
		if bytes.HasPrefix(head, []byte(tag)) {
			return true
		}
	}
	for {
		c, err := br.ReadByte()
		if err != nil {
			return err == io.EOF
		}
		if c != 0 {
			return false
		}
	}
}
