package deepgram_test

import (
	"testing"

	"sttbench/endpoint"
	"sttbench/providers/conformance"
	"sttbench/providers/deepgram"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Vendor{
		Dialect: deepgram.Dialect{}, Emulator: deepgram.Emulator{},
		Want: map[string]endpoint.Class{
			// The vendor's own endpointing waits 10 ms of silence: it is done long
			// before a local VAD knows that the turn is over.
			"natural": endpoint.EarlyFinal,
		},
	})
}
