package openai_test

import (
	"testing"

	"sttbench/endpoint"
	"sttbench/providers/conformance"
	"sttbench/providers/openai"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Vendor{
		Dialect: openai.Dialect{}, Emulator: openai.Emulator{},
		NaturalModel: "gpt-4o-transcribe", OneFinal: true,
		Want: map[string]endpoint.Class{
			// The final is the acknowledgement: without one there is neither.
			"no ack": endpoint.NoAnswer,
			// Audio waits for session.updated, so a silent server fails earlier.
			"silent": endpoint.ConnectFailed,
		},
	})
}
