package vad

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// ErrNotCached says that a result could not be stored. The result itself is
// good.
var ErrNotCached = errors.New("vad result not cached")

// Cache keeps results in a folder, one file each, so that a recording is
// analysed once. It may be used by several goroutines and processes at a time.
//
// A file is found by the hash of the audio, the parameters, the model, the
// version of ONNX Runtime and that of the algorithm. It holds the probabilities
// as they came from the model; turns are computed from them again, so that a
// cached result and a fresh one are equal. Files that are damaged or belong to
// something else are treated as absent and replaced.
type Cache struct {
	// Dir is the folder; it is made when needed. Empty means the folder
	// sttbench/vad in the user's cache folder ([os.UserCacheDir]).
	Dir string
}

// Analyze returns the cached result or calls [Model.Analyze] and stores what it
// returns. If it cannot be stored, the error matches [ErrNotCached] and comes
// together with the result.
func (c Cache) Analyze(ctx context.Context, m *Model, samples []int16, p Params) (*Result, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	key := cacheKey{
		Algorithm: algorithm, Model: m.hash, Runtime: m.runtime,
		Audio: hashAudio(samples), Samples: len(samples),
		Threshold: p.Threshold, MinSilence: p.MinSilence, MinSpeech: p.MinSpeech,
	}
	path, pathErr := c.path(key)
	if pathErr == nil {
		if r, err := readCached(path, key); err == nil {
			return r, nil
		}
	}
	r, err := m.Analyze(ctx, samples, p)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(pathErr, writeCached(path, key, r.Probs)); err != nil {
		return r, fmt.Errorf("%w: %w", ErrNotCached, err)
	}
	return r, nil
}

// algorithm names the way from samples to probabilities and the format of the
// file. Change it when either changes.
const algorithm = "sttbench vad 1"

// cacheKey is everything a result depends on.
type cacheKey struct {
	Algorithm  string        `json:"algorithm"`
	Model      string        `json:"model_sha256"`
	Runtime    string        `json:"onnxruntime"`
	Audio      string        `json:"audio_sha256"`
	Samples    int           `json:"samples"`
	Threshold  float64       `json:"threshold"`
	MinSilence time.Duration `json:"min_silence_ns"`
	MinSpeech  time.Duration `json:"min_speech_ns"`
}

func (k cacheKey) params() Params {
	return Params{Threshold: k.Threshold, MinSilence: k.MinSilence, MinSpeech: k.MinSpeech}
}

// cacheFile is the content of a file. Probs holds little-endian float32 values;
// JSON turns bytes into base64.
type cacheFile struct {
	cacheKey
	Probs []byte `json:"probs_f32le"`
	Sum   string `json:"probs_sha256"`
}

func (c Cache) path(k cacheKey) (string, error) {
	dir := c.Dir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "sttbench", "vad")
	}
	id, err := json.Marshal(k)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(id)
	return filepath.Join(dir, hex.EncodeToString(sum[:])+".json"), nil
}

func readCached(path string, want cacheKey) (*Result, error) {
	if err := isFile(path); err != nil { // opening a pipe would block
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(8*maxWindows(want)+4096) { // base64 of 4 bytes, and the key
		return nil, errors.New("too large")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decodeCached(data, want)
}

// minWindows and maxWindows are the limits of what an analysis makes of the
// audio and the silence after it.
func minWindows(k cacheKey) int { return (k.Samples + Window - 1) / Window }
func maxWindows(k cacheKey) int { return minWindows(k) + tailWindows(k.params()) }

func decodeCached(data []byte, want cacheKey) (*Result, error) {
	var f cacheFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.cacheKey != want {
		return nil, errors.New("belongs to something else")
	}
	if f.Sum != sumOf(f.Probs) {
		return nil, errors.New("checksum does not match")
	}
	if n := len(f.Probs) / 4; len(f.Probs)%4 != 0 || n < minWindows(want) || n > maxWindows(want) {
		return nil, fmt.Errorf("%d bytes of probabilities", len(f.Probs))
	}
	probs := make([]float32, 0, len(f.Probs)/4)
	for i := 0; i < len(f.Probs); i += 4 {
		p := math.Float32frombits(binary.LittleEndian.Uint32(f.Probs[i:]))
		if !(p >= 0 && p <= 1) {
			return nil, fmt.Errorf("probability %v", p)
		}
		probs = append(probs, p)
	}
	r := &Result{
		Probs: probs, Samples: want.Samples, Params: want.params(),
		AudioHash: want.Audio, ModelHash: want.Model, RuntimeVersion: want.Runtime,
	}
	var open bool
	if r.Turns, r.Dropped, open = split(probs, r.Params); open {
		return nil, errors.New("last turn is open")
	}
	return r, nil
}

// writeCached writes the file under a temporary name and renames it, so that
// nobody reads half of it.
func writeCached(path string, k cacheKey, probs []float32) (err error) {
	if path == "" {
		return nil // the caller knows why
	}
	raw := make([]byte, 0, 4*len(probs))
	for _, p := range probs {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(p))
	}
	data, err := json.Marshal(cacheFile{cacheKey: k, Probs: raw, Sum: sumOf(raw)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(append(data, '\n'))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
