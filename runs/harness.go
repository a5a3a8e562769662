package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"sttbench/regular"
)

// Harness is the error of our own times, as "sttbench calibrate" measured it on the
// machine of a run. Times are microseconds.
type Harness struct {
	At      time.Time `json:"at"`
	Streams int       `json:"streams"`
	Answers int       `json:"answers"`
	Stamps  string    `json:"stamps"`
	// TTFBias is the median of reported − true time to final, TTFP99 the 99th
	// percentile of its size, LateP99 that of the lateness of audio writes.
	TTFBias float64 `json:"ttf_bias_us"`
	TTFP99  float64 `json:"ttf_p99_us"`
	LateP99 float64 `json:"late_p99_us"`
}

// calibrationFile holds the Harness of a run's machine.
const calibrationFile = "calibration.json"

// keepHarness stores the calibration with which a run is started; a run that goes on
// keeps the one it has.
func (d *dir) keepHarness(h *Harness) error {
	have, err := d.harness()
	if err != nil || have != nil || h == nil {
		return err
	}
	return d.write(calibrationFile, func(w io.Writer) error { return json.NewEncoder(w).Encode(h) })
}

// harness reads the stored calibration, nil where there is none.
func (d *dir) harness() (*Harness, error) {
	data, err := regular.ReadFile(filepath.Join(d.path, calibrationFile), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	h := new(Harness)
	if err == nil {
		err = json.Unmarshal(data, h)
	}
	if err != nil {
		return nil, &DirError{d.path, fmt.Errorf("%s: %w", calibrationFile, err), "remove the file to go without"}
	}
	return h, nil
}
