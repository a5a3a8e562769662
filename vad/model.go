package vad

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// maxModelBytes bounds what is read as a model; Silero's has 2.3 MB.
const maxModelBytes = 64 << 20

// Model is a loaded Silero VAD. It is safe for concurrent use.
type Model struct {
	hash    string
	runtime string
	data    []byte

	mu     sync.Mutex // protects all following fields
	idle   []*network // ready for the next detector
	closed bool
}

// Open loads ONNX Runtime and the model, and tries the model on one window, so
// that a wrong file is told here.
//
// ONNX Runtime is loaded once per process and stays loaded. Opening again with
// the same library is cheap; with another one it is an error.
func Open(p Paths) (*Model, error) {
	data, err := readModel(p.Model)
	if err != nil {
		return nil, fmt.Errorf("vad model: %w", err)
	}
	if err := loadLibrary(p.Library); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	m := &Model{hash: hex.EncodeToString(sum[:]), runtime: ort.GetVersion(), data: data}
	if err := m.try(); err != nil {
		return nil, fmt.Errorf("vad model %s is not a usable Silero VAD model (%w): run `make deps` or set %s", p.Model, err, EnvModel)
	}
	return m, nil
}

func readModel(path string) ([]byte, error) {
	if err := isFile(path); err != nil { // opening a pipe would block
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxModelBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxModelBytes {
		return nil, fmt.Errorf("%s: larger than %d MB", path, maxModelBytes>>20)
	}
	return data, nil
}

// try runs the model on a window of zeros.
func (m *Model) try() error {
	n, err := newNetwork(m.data)
	if err != nil {
		return err
	}
	if _, err := n.prob(make([]int16, Window)); err != nil {
		n.destroy()
		return err
	}
	m.give(n)
	return nil
}

// Hash returns the SHA-256 of the model file, in hexadecimal.
func (m *Model) Hash() string { return m.hash }

// RuntimeVersion returns the version of the loaded ONNX Runtime, such as "1.28.2".
func (m *Model) RuntimeVersion() string { return m.runtime }

// Close frees the model's sessions; those of detectors that are still open are
// freed when these are closed. New detectors cannot be made any more. Closing
// twice is allowed. The error is always nil.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.idle {
		n.destroy()
	}
	m.idle, m.closed = nil, true
	return nil
}

var errModelClosed = errors.New("vad model is closed")

// take returns a network in its initial state.
func (m *Model) take() (*network, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, errModelClosed
	}
	if last := len(m.idle) - 1; last >= 0 {
		n := m.idle[last]
		m.idle = m.idle[:last]
		m.mu.Unlock()
		return n, nil
	}
	m.mu.Unlock()
	return newNetwork(m.data)
}

// give takes back a network that is not used any more.
func (m *Model) give(n *network) {
	n.reset()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		n.destroy()
		return
	}
	m.idle = append(m.idle, n)
}
