package corpus

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// decodeFLAC decodes with mewkiz/flac, which checks the CRC of every frame; the
// count of samples is checked here where the header states it. The library writes
// a line to the standard logger for each frame at 24 kHz (version 1.0.14); a
// program that does not want it sets log.SetOutput.
func decodeFLAC(r io.Reader, limit time.Duration) (Audio, error) {
	stream, err := flac.New(r)
	if err != nil {
		return Audio{}, fmt.Errorf("damaged FLAC header: %w", noEOF(err))
	}
	info := stream.Info
	if err := checkFLAC(info); err != nil {
		return Audio{}, err
	}
	a := Audio{Rate: int(info.SampleRate)}
	for n := 0; ; n++ {
		// What follows the last sample, such as a tag, is not ours to read.
		if info.NSamples > 0 && uint64(len(a.Samples)) >= info.NSamples {
			break
		}
		f, err := nextFrame(stream, info)
		if err == io.EOF {
			break
		}
		if err != nil {
			return Audio{}, fmt.Errorf("damaged FLAC frame %d: %w", n, noEOF(err))
		}
		if err := checkLength(int64(len(a.Samples)+len(f.Subframes[0].Samples)), a.Rate, limit); err != nil {
			return Audio{}, err
		}
		a.Samples = appendFrame(a.Samples, f, info)
	}
	if info.NSamples > 0 && uint64(len(a.Samples)) != info.NSamples {
		return Audio{}, fmt.Errorf("cut-off FLAC: the header announces %d samples, the file has %d", info.NSamples, len(a.Samples))
	}
	return a, nil
}

func checkFLAC(info *meta.StreamInfo) error {
	if err := checkRate(int64(info.SampleRate)); err != nil {
		return err
	}
	if err := checkChannels(int(info.NChannels)); err != nil {
		return err
	}
	if info.BitsPerSample < 8 || info.BitsPerSample > 24 {
		return fmt.Errorf("samples of %d bits, want 8 to 24", info.BitsPerSample)
	}
	return nil
}

// nextFrame returns the next frame with its samples, io.EOF after the last.
func nextFrame(stream *flac.Stream, info *meta.StreamInfo) (*frame.Frame, error) {
	f, err := stream.Next()
	if err != nil {
		return nil, err
	}
	// A frame may leave the width to the stream header. The library does not look
	// there, and would read samples of 0 bits.
	if f.BitsPerSample == 0 {
		f.BitsPerSample = info.BitsPerSample
	}
	switch {
	case f.BitsPerSample != info.BitsPerSample,
		f.Channels.Count() != int(info.NChannels),
		f.SampleRate != 0 && f.SampleRate != info.SampleRate:
		return nil, errors.New("rate, width or channels differ from the stream header")
	}
	if err := f.Parse(); err != nil {
		return nil, unexpectedEOF(err)
	}
	return f, nil
}

func appendFrame(samples []float32, f *frame.Frame, info *meta.StreamInfo) []float32 {
	scale := 1 / float64(int64(len(f.Subframes))<<(info.BitsPerSample-1))
	for i := range f.Subframes[0].Samples {
		var sum int64
		for _, sub := range f.Subframes {
			sum += int64(sub.Samples[i])
		}
		samples = append(samples, float32(float64(sum)*scale))
	}
	return samples
}

// unexpectedEOF marks an end of file in the middle of something.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// noEOF replaces Go's names for an early end of the file by words.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends early")
	}
	return err
}
