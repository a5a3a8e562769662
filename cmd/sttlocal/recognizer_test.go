package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestEndpointer(t *testing.T) {
	noise := func(d time.Duration, dbfs float64) []int16 {
		rng := rand.New(rand.NewPCG(1, 2))
		s := make([]int16, count(d))
		for i := range s {
			s[i] = int16(32768 * math.Pow(10, dbfs/20) * rng.NormFloat64())
		}
		return s
	}
	for _, tt := range []struct {
		name        string
		samples     []int16
		wantSpeech  bool
		wantSilence time.Duration
	}{
		{"digital silence", silence(time.Second), false, time.Second},
		{"quiet room", noise(time.Second, -62), false, time.Second},
		{"click", slices.Concat(silence(100*time.Millisecond), tone(20*time.Millisecond), silence(100*time.Millisecond)), false, 100 * time.Millisecond},
		{"speech", slices.Concat(silence(100*time.Millisecond), tone(50*time.Millisecond)), true, 0},
		{"speech in a room", slices.Concat(noise(time.Second, -55), tone(50*time.Millisecond)), true, 0},
		{"pause after speech", slices.Concat(tone(time.Second), silence(330*time.Millisecond)), false, 330 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEndpointer()
			e.add(tt.samples)
			if e.speech() != tt.wantSpeech || e.silence() != tt.wantSilence {
				t.Errorf("speech %v, silence %v, want %v, %v", e.speech(), e.silence(), tt.wantSpeech, tt.wantSilence)
			}
		})
	}
}

// The state depends on the audio only, not on how it was cut into messages.
func TestEndpointerIgnoresChunking(t *testing.T) {
	audio := slices.Concat(silence(200*time.Millisecond), tone(730*time.Millisecond), silence(95*time.Millisecond), tone(41*time.Millisecond))
	whole := newEndpointer()
	whole.add(audio)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		parts := newEndpointer()
		for rest := audio; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(500))
			parts.add(rest[:n])
			rest = rest[n:]
		}
		if *parts != *whole {
			t.Fatalf("in chunks %+v, whole %+v", *parts, *whole)
		}
	}
}

// say feeds audio in 20 ms messages and returns the ends of utterances.
func say(t *testing.T, r *recognizer, samples []int16) (ends []time.Duration) {
	t.Helper()
	for chunk := range slices.Chunk(samples, count(20*time.Millisecond)) {
		_, ended, err := r.accept(t.Context(), chunk)
		if err != nil {
			t.Fatal(err)
		}
		r.hypothesis()
		if ended {
			ends = append(ends, position(r.heard))
		}
	}
	return ends
}

func TestNaturalEndpoint(t *testing.T) {
	r := newRecognizer(&fakeDecoder{})
	ends := say(t, r, slices.Concat(silence(time.Second), tone(2*time.Second), silence(2*time.Second), tone(time.Second), silence(600*time.Millisecond), tone(time.Second), silence(time.Second)))
	want := []time.Duration{3700 * time.Millisecond, 8300 * time.Millisecond} // the pause of 600 ms ends nothing
	if !slices.Equal(ends, want) {
		t.Errorf("utterances end at %v, want %v", ends, want)
	}
	if r.running {
		t.Error("an utterance runs in silence")
	}
}

func TestUtteranceIsBounded(t *testing.T) {
	r := newRecognizer(&fakeDecoder{})
	if ends := say(t, r, tone(45*time.Second)); len(ends) != 2 || ends[0] > maxUtterance+time.Second {
		t.Errorf("45 s without a pause end at %v, want two ends, the first at %v", ends, maxUtterance)
	}
}

// Word times count from the start of the connection, whatever was cut before.
func TestWordTimes(t *testing.T) {
	r := newRecognizer(&fakeDecoder{})
	say(t, r, slices.Concat(silence(time.Second), tone(1500*time.Millisecond)))
	first, err := r.finish()
	if err != nil || len(first) != 1 {
		t.Fatalf("got %v, %v, want one word", first, err)
	}
	// Speech is noticed 30 ms late and 300 ms of audio before that are kept.
	if got, want := first[0].Start, 730*time.Millisecond; got != want {
		t.Errorf("first word starts at %v, want %v", got, want)
	}
	say(t, r, slices.Concat(silence(5*time.Second), tone(1500*time.Millisecond)))
	second, err := r.finish()
	if err != nil || len(second) != 1 {
		t.Fatalf("got %v, %v, want one word", second, err)
	}
	if got, want := second[0].Start, 7230*time.Millisecond; got != want {
		t.Errorf("second word starts at %v, want %v", got, want)
	}
}

// Audio before a reset must not be heard again after it.
func TestFinishForgetsRecentAudio(t *testing.T) {
	d := &fakeDecoder{}
	r := newRecognizer(d)
	say(t, r, tone(time.Second))
	r.finish()
	say(t, r, tone(40*time.Millisecond))
	if want := count(40 * time.Millisecond); !r.running || d.samples != want {
		t.Errorf("the new utterance has %d samples (running: %v), want %d", d.samples, r.running, want)
	}
}

func TestPartialsAreBounded(t *testing.T) {
	d := &fakeDecoder{}
	say(t, newRecognizer(d), tone(5*time.Second))
	if most := int(5 * time.Second / partialEvery); d.hypotheses == 0 || d.hypotheses > most {
		t.Errorf("%d hypotheses for 5 s of audio, want 1 to %d", d.hypotheses, most)
	}
}

func TestAcceptStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := newRecognizer(&fakeDecoder{}).accept(ctx, tone(30*time.Second))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
