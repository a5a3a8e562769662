package deepgram

import (
	"time"

	"sttbench/providers"
)

const (
	name     = "deepgram"
	keyVar   = "DEEPGRAM_API_KEY"
	endpoint = "wss://api.deepgram.com/v1/listen"
	path     = "/v1/listen"
)

// Describe implements providers.Dialect.
func (Dialect) Describe() providers.Description {
	const pricing = "deepgram.com/pricing, as compiled in open-gauntlet-leaderboard data/asr.json"
	return providers.Description{
		Name:      name,
		Title:     "Deepgram Nova (live v1)",
		Version:   "1",
		Transport: "websocket",
		Endpoint:  endpoint,
		KeyVar:    keyVar,
		Models: []providers.Model{
			{ID: "nova-3", Note: "general; key terms; language multi switches between about 10 languages"},
			{ID: "nova-3-medical", Note: "English, medical vocabulary"},
			{ID: "nova-2", Note: "previous generation; keywords instead of key terms"},
			{ID: "nova-2-phonecall"},
			{ID: "nova-2-conversationalai"},
			{ID: "nova-2-meeting"},
			{ID: "enhanced"},
			{ID: "base"},
		},
		Languages: "one BCP 47 code, or multi for code switching (nova-3, nova-2); the vendor's default is en",
		Params:    describeParams(),
		// The docs name no closed list for linear16; these are the usual rates.
		SampleRates: []int{16000, 8000, 24000, 32000, 44100, 48000},
		// Advice, not limits: 20 to 250 ms a message, about 100 ms as a compromise.
		Chunk:        providers.Chunk{Advice: 100 * time.Millisecond},
		CanForce:     true,
		ForceMessage: finalize,
		// Interims, empty ones too, come about once per second of audio.
		Continuous: true,
		// A stream without audio and KeepAlive is closed after 10 s; the advice is
		// one KeepAlive every 3 to 5 s.
		KeepAliveIdle: 4 * time.Second,
		Prices: []providers.Price{
			{Model: "nova-3", USD: 0.0048, Unit: "minute", Note: "monolingual, streaming, pay as you go", Date: "2026-08-01", Source: pricing},
			{Model: "nova-3", USD: 0.0058, Unit: "minute", Note: "multilingual, streaming, pay as you go", Date: "2026-08-01", Source: pricing},
			{Model: "nova-3", USD: 0.0042, Unit: "minute", Note: "monolingual, streaming, Growth plan", Date: "2026-08-01", Source: pricing},
			{Model: "nova-3", USD: 0.0050, Unit: "minute", Note: "multilingual, streaming, Growth plan", Date: "2026-08-01", Source: pricing},
		},
		Sources: []providers.Source{
			{What: "message shapes, query parameters, authentication: deepgram/deepgram-api-specs asyncapi.yml (2026-07-22)", Confidence: "source"},
			{What: "message types and control messages: deepgram-go-sdk v3, deepgram-js-sdk, deepgram-python-sdk", Confidence: "source"},
			{What: "Finalize, from_finalize in most cases only, CloseStream, KeepAlive, 10 s idle limit, close codes: developers.deepgram.com/docs", Confidence: "docs"},
			{What: "chunk size advice, merging of interim and final results: developers.deepgram.com/docs", Confidence: "docs"},
			{What: "Finalize does not set speech_final: deepgram-js-sdk issue 343", Confidence: "report"},
			{What: "empty finals: pipecat issue 1261; missing from_finalize: vellum-assistant pull request 37537", Confidence: "report"},
			{What: "no_delay parameter: livekit plugin and coval bench", Confidence: "report"},
			{What: "prices: " + pricing, Confidence: "report"},
			{What: "WebSocket pings do not count as activity", Confidence: "unsure"},
		},
	}
}
