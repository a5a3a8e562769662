package runs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"sttbench/corpus"
	"sttbench/record"
	"sttbench/vad"
)

// Preparer decodes items and finds their turns, ahead of any session.
type Preparer struct {
	// Model is the loaded voice activity detector.
	Model *vad.Model
	// Cache keeps turns between runs; its zero value is the user's cache folder.
	Cache vad.Cache
	// Params are the settings of the detector.
	Params vad.Params
	// Warn is told of what does not stop the preparation; nil ignores it.
	Warn func(error)
}

// Prepared is an item that is ready to be streamed.
type Prepared struct {
	Item  record.Item
	Turns record.Turns
	audio corpus.Audio

	mu  sync.Mutex
	pcm map[int][]byte // by sample rate, guarded by mu
}

// Prepare decodes an item and finds its turns. Errors are a *[corpus.AudioError]
// or say what failed in the detector.
func (p *Preparer) Prepare(ctx context.Context, item corpus.Item, hasReference bool) (*Prepared, error) {
	hash, err := item.Hash()
	if err != nil {
		return nil, err
	}
	audio, err := corpus.Decode(item.Audio)
	if err != nil {
		return nil, err
	}
	found, err := p.Cache.Analyze(ctx, p.Model, samples(audio.Resample(vad.SampleRate).PCM16LE()), p.Params)
	if errors.Is(err, vad.ErrNotCached) && found != nil {
		if p.Warn != nil {
			p.Warn(err)
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("find turns of %s: %w", item.ID, err)
	}
	return &Prepared{
		Item: record.Item{
			Dataset: item.Dataset, ID: item.ID, Recording: item.Recording, Hash: hash, Duration: audio.Duration(),
			Reference: item.Reference, HasReference: hasReference, Language: item.Language, Tags: item.Tags, Weight: item.Weight,
		},
		Turns: turnsOf(found),
		audio: audio,
		pcm:   make(map[int][]byte),
	}, nil
}

// PCM is the item as signed 16 bit little endian mono at the given rate. Each
// rate is made once; call it before sessions start.
func (p *Prepared) PCM(rate int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	pcm, ok := p.pcm[rate]
	if !ok {
		pcm = p.audio.Resample(rate).PCM16LE()
		p.pcm[rate] = pcm
	}
	return pcm
}

// SourceRate is the sample rate of the item's file in Hz.
func (p *Prepared) SourceRate() int { return p.audio.Rate }

func samples(pcm []byte) []int16 {
	s := make([]int16, len(pcm)/2)
	for i := range s {
		s[i] = int16(binary.LittleEndian.Uint16(pcm[2*i:]))
	}
	return s
}

func turnsOf(r *vad.Result) record.Turns {
	t := record.Turns{Model: "sha256:" + r.ModelHash, Params: vadParams(r.Params), List: []record.Turn{}}
	for _, v := range r.Turns {
		t.List = append(t.List, record.Turn{Start: v.Start, SE: v.SE, EOS: v.EOS, SELow: v.SELow, SEHigh: v.SEHigh})
	}
	return t
}

func vadParams(p vad.Params) string {
	num := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }
	return fmt.Sprintf("threshold=%g min_silence=%s min_speech=%s", p.Threshold, num(p.MinSilence), num(p.MinSpeech))
}
