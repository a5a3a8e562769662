package providers

import "time"

// Description says what a vendor's protocol can do. The catalogue prints it; the
// streamer obeys it.
type Description struct {
	Name      string // in commands and records: lower case, no blanks
	Title     string // for people
	Version   string // of the dialect; grows with each change of what is sent or understood
	Transport string // websocket
	Endpoint  string // the vendor's own URL; "" where the user must give one
	// KeyVar names the environment variable of the API key; "" where none is
	// needed.
	KeyVar string
	// Models, the default first. Other names are passed through: vendors add
	// models faster than tools do.
	Models    []Model
	Languages string // in words
	Params    []Param
	// SampleRates in Hz that the vendor takes, the preferred one first.
	SampleRates []int
	Chunk       Chunk
	// CanForce tells that a turn can be ended by us.
	CanForce bool
	// ForceMessage is that message, for people.
	ForceMessage string
	// ForceEndsStream tells that nothing may follow a forced endpoint.
	ForceEndsStream bool
	// ForceNeedsAudio is the least audio that must have been sent since the last
	// forced endpoint; zero where there is no such rule.
	ForceNeedsAudio time.Duration
	// Continuous providers send something all the time while audio flows.
	Continuous bool
	// MaxStream is the longest stream that the vendor allows; 0 where none is
	// documented.
	MaxStream time.Duration
	// KeepAliveIdle is the time without audio after which KeepAlive is due; 0
	// where none is needed.
	KeepAliveIdle time.Duration
	Prices        []Price
	Sources       []Source
}

// Model is one recogniser that a vendor offers.
type Model struct {
	ID   string
	Note string
}

// Param is one vendor parameter that a user may set.
type Param struct {
	Name    string
	Values  string // in words
	Default string // what we send without it; "" where we send nothing
	Note    string
}

// Chunk bounds the audio of one message: Min and Max are the vendor's limits (0
// where none is documented), Advice what it recommends (0: our 20 ms).
type Chunk struct {
	Min, Advice, Max time.Duration
}

// Price is a list price. Prices change: they carry their date and source.
type Price struct {
	Model  string
	USD    float64
	Unit   string // minute
	Note   string
	Date   string // YYYY-MM-DD
	Source string
}

// Source is where a fact about the protocol was read.
type Source struct {
	What string
	// Confidence: "source" (vendor's SDK or specification), "docs" (vendor's
	// documentation), "report" (third party), "unsure".
	Confidence string
}
