package vad

import (
	"errors"
	"fmt"

	ort "github.com/yalue/onnxruntime_go"
)

// contextSamples is how many samples of the window before go in front of each
// window: Silero VAD version 5 at 16 kHz was trained with them.
const contextSamples = 64

// network is one ONNX session with its tensors, which live as long as it does.
// It carries the recurrent state of one stream of audio and is not safe for
// concurrent use.
type network struct {
	session *ort.AdvancedSession
	input   *ort.Tensor[float32] // context, then window
	state   *ort.Tensor[float32] // recurrent state in
	rate    *ort.Tensor[int64]
	output  *ort.Tensor[float32] // probability
	next    *ort.Tensor[float32] // recurrent state out
}

// newNetwork builds a session from the bytes of the model. ONNX Runtime must be
// loaded.
func newNetwork(model []byte) (*network, error) {
	n := new(network)
	if err := n.build(model); err != nil {
		n.destroy()
		return nil, err
	}
	return n, nil
}

func (n *network) build(model []byte) error {
	var errs [5]error
	n.input, errs[0] = ort.NewEmptyTensor[float32](ort.NewShape(1, contextSamples+Window))
	n.state, errs[1] = ort.NewEmptyTensor[float32](ort.NewShape(2, 1, 128))
	n.rate, errs[2] = ort.NewTensor(ort.NewShape(1), []int64{SampleRate})
	n.output, errs[3] = ort.NewEmptyTensor[float32](ort.NewShape(1, 1))
	n.next, errs[4] = ort.NewEmptyTensor[float32](ort.NewShape(2, 1, 128))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	options, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	// The model is too small to gain from threads, and a thread pool would
	// take CPU from everything else.
	if err := errors.Join(options.SetIntraOpNumThreads(1), options.SetInterOpNumThreads(1)); err != nil {
		return err
	}
	n.session, err = ort.NewAdvancedSessionWithONNXData(model,
		[]string{"input", "state", "sr"}, []string{"output", "stateN"},
		[]ort.Value{n.input, n.state, n.rate}, []ort.Value{n.output, n.next}, options)
	return err
}

// prob returns the probability of speech in the next window, in [0, 1]. window
// holds Window samples. It does not allocate.
func (n *network) prob(window []int16) (float32, error) {
	in := n.input.GetData()
	for i, s := range window[:Window] {
		in[contextSamples+i] = float32(s) / 32768
	}
	if err := n.session.Run(); err != nil {
		return 0, err
	}
	copy(n.state.GetData(), n.next.GetData())
	copy(in[:contextSamples], in[Window:])
	p := n.output.GetData()[0]
	if !(p >= 0 && p <= 1) { // so that NaN fails
		return 0, fmt.Errorf("model returned the probability %v", p)
	}
	return p, nil
}

// reset forgets the audio seen so far.
func (n *network) reset() {
	clear(n.input.GetData())
	clear(n.state.GetData())
}

// destroy frees what was built, also after a build that failed half way.
func (n *network) destroy() {
	if n.session != nil {
		n.session.Destroy()
	}
	for _, t := range []*ort.Tensor[float32]{n.input, n.state, n.output, n.next} {
		if t != nil {
			t.Destroy()
		}
	}
	if n.rate != nil {
		n.rate.Destroy()
	}
	*n = network{}
}
