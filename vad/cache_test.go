package vad

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seedCache returns the key and the file of a made-up result.
func seedCache(t testing.TB, dir string) (cacheKey, string, []float32) {
	t.Helper()
	probs := append(windows("..########^^"), windows(strings.Repeat(".", 12))...)
	k := cacheKey{Algorithm: algorithm, Model: "m", Runtime: "1", Audio: "a", Samples: 14*Window - 5,
		Threshold: 0.5, MinSilence: ms(200), MinSpeech: ms(250)}
	path, err := Cache{dir}.path(k)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeCached(path, k, probs); err != nil {
		t.Fatal(err)
	}
	return k, path, probs
}

func TestCacheRoundTrip(t *testing.T) {
	k, path, probs := seedCache(t, filepath.Join(t.TempDir(), "new", "folder"))
	got, err := readCached(path, k)
	if err != nil {
		t.Fatal(err)
	}
	want := &Result{
		Probs: probs, Samples: k.Samples, Params: DefaultParams(),
		AudioHash: "a", ModelHash: "m", RuntimeVersion: "1",
		Turns: Turns(probs, DefaultParams()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Turns) != 1 {
		t.Errorf("turns %v", got.Turns)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v; want one", entries, err)
	}
}

func TestCachePathDependsOnEverything(t *testing.T) {
	base := cacheKey{Algorithm: "1", Model: "m", Runtime: "r", Audio: "a", Samples: 1, Threshold: 0.5, MinSilence: 1, MinSpeech: 1}
	seen := map[string]int{}
	for i, change := range []func(*cacheKey){
		func(*cacheKey) {},
		func(k *cacheKey) { k.Algorithm = "2" },
		func(k *cacheKey) { k.Model = "n" },
		func(k *cacheKey) { k.Runtime = "s" },
		func(k *cacheKey) { k.Audio = "b" },
		func(k *cacheKey) { k.Samples = 2 },
		func(k *cacheKey) { k.Threshold = 0.55 },
		func(k *cacheKey) { k.MinSilence = 2 },
		func(k *cacheKey) { k.MinSpeech = 2 },
	} {
		k := base
		change(&k)
		path, err := Cache{"d"}.path(k)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[path]; ok {
			t.Errorf("keys %d and %d share %s", before, i, path)
		}
		seen[path] = i
	}
}

func TestCacheDefaultDir(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", dir)
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path, err := Cache{}.path(cacheKey{})
	if want := filepath.Join(user, "sttbench", "vad"); err != nil || filepath.Dir(path) != want {
		t.Errorf("got %s, %v; want a file in %s", path, err, want)
	}
}

func TestCacheIgnoresDamage(t *testing.T) {
	flip := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	// resum makes the checksum right again, so that what follows it is reached.
	resum := func(change func(*cacheFile)) func([]byte) []byte {
		return func(b []byte) []byte {
			var f cacheFile
			if err := json.Unmarshal(b, &f); err != nil {
				t.Fatal(err)
			}
			change(&f)
			f.Sum = sumOf(f.Probs)
			b, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	tests := map[string]func([]byte) []byte{
		"empty":                    func([]byte) []byte { return nil },
		"truncated":                func(b []byte) []byte { return b[:len(b)/2] },
		"last brace missing":       func(b []byte) []byte { return b[:len(b)-2] },
		"something behind":         func(b []byte) []byte { return append(b, b...) },
		"zeros":                    func(b []byte) []byte { return make([]byte, len(b)) },
		"other json":               func([]byte) []byte { return []byte(`{"a":1}`) },
		"json null":                func([]byte) []byte { return []byte(`null`) },
		"huge":                     func(b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), 1<<20)...) },
		"other algorithm":          flip(algorithm, "sttbench vad 0"),
		"other audio":              flip(`"audio_sha256":"a"`, `"audio_sha256":"b"`),
		"other parameters":         flip(`"threshold":0.5`, `"threshold":0.6`),
		"one digit":                flip(`"probs_f32le":"z`, `"probs_f32le":"0`),
		"checksum":                 flip(`"probs_sha256":"`, `"probs_sha256":"0`),
		"half a probability":       resum(func(f *cacheFile) { f.Probs = f.Probs[:len(f.Probs)-1] }),
		"too few probabilities":    resum(func(f *cacheFile) { f.Probs = f.Probs[:4*13] }),
		"too many probabilities":   resum(func(f *cacheFile) { f.Probs = append(f.Probs, make([]byte, 4*400)...) }),
		"no probability (NaN)":     resum(func(f *cacheFile) { copy(f.Probs, "\xff\xff\xff\xff") }),
		"no probability (above 1)": resum(func(f *cacheFile) { copy(f.Probs, "\x00\x00\x00\x40") }),
		"open turn":                resum(func(f *cacheFile) { copy(f.Probs[len(f.Probs)-4:], "\x00\x00\x80\x3f") }),
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			k, path, _ := seedCache(t, t.TempDir())
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := damage(bytes.Clone(data))
			if bytes.Equal(damaged, data) {
				t.Fatal("the damage changes nothing")
			}
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			r, err := readCached(path, k)
			if err == nil {
				t.Errorf("accepted: %+v", r)
			}
			t.Log(err)
		})
	}
}

func TestCacheAnalyze(t *testing.T) {
	m := openModel(t)
	recordings := speech(t)[:3]
	cache := Cache{t.TempDir()}
	ctx := context.Background()
	for _, r := range recordings {
		want := analyze(t, m, r.samples)
		for _, round := range []string{"fresh", "cached"} {
			got, err := cache.Analyze(ctx, m, r.samples, DefaultParams())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-direct +cache):\n%s", r.name, round, diff)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(cache.Dir, "*"))
	if err != nil || len(files) != len(recordings) {
		t.Fatalf("%d files, %v; want %d", len(files), err, len(recordings))
	}

	// A second call does not ask the model: a closed one serves.
	closed := openOwnModel(t)
	closed.Close()
	if _, err := cache.Analyze(ctx, closed, recordings[0].samples, DefaultParams()); err != nil {
		t.Errorf("cached result was not used: %v", err)
	}

	// A damaged file is replaced.
	for _, path := range files {
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cache.Analyze(ctx, m, recordings[0].samples, DefaultParams()); err != nil {
		t.Errorf("damaged file: %v", err)
	}
	if _, err := cache.Analyze(ctx, closed, recordings[0].samples, DefaultParams()); err != nil {
		t.Errorf("damaged file was not replaced: %v", err)
	}
}

func TestCacheAtTheSameTime(t *testing.T) {
	m := openModel(t)
	r := speech(t)[0]
	want := analyze(t, m, r.samples)
	cache := Cache{t.TempDir()}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := cache.Analyze(context.Background(), m, r.samples, DefaultParams())
			if err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	wg.Wait()
	if files, err := filepath.Glob(filepath.Join(cache.Dir, "*")); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v; want one", files, err)
	}
}

func TestCacheCannotStore(t *testing.T) {
	m := openModel(t)
	blocked := filepath.Join(tree(t, "file"), "file") // a file where the folder should be
	r, err := Cache{blocked}.Analyze(context.Background(), m, silence(time.Second), DefaultParams())
	if !errors.Is(err, ErrNotCached) {
		t.Errorf("got %v, want %v", err, ErrNotCached)
	}
	if r == nil || r.Samples != SampleRate {
		t.Errorf("result %v", r)
	}
	if _, err := (Cache{t.TempDir()}).Analyze(context.Background(), m, nil, Params{}); err == nil || errors.Is(err, ErrNotCached) {
		t.Errorf("bad parameters: %v", err)
	}
}

func FuzzDecodeCached(f *testing.F) {
	k, path, _ := seedCache(f, f.TempDir())
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"algorithm":"sttbench vad 1","probs_f32le":"AAAA"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeCached(data, k)
		if err == nil && len(r.Probs) < minWindows(k) {
			t.Errorf("accepted %d probabilities", len(r.Probs))
		}
	})
}
