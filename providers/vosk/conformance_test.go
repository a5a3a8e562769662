package vosk_test

import (
	"testing"

	"sttbench/endpoint"
	"sttbench/providers/conformance"
	"sttbench/providers/vosk"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Vendor{
		Dialect: vosk.Dialect{}, Emulator: vosk.Emulator{}, OneFinal: true,
		Want: map[string]endpoint.Class{
			// The final is the acknowledgement: without one there is neither.
			"no ack": endpoint.NoAnswer,
			// An empty reply says nothing about the partial before it.
			"empty ack": endpoint.TailLost,
		},
	})
}
