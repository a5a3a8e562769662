package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"sttbench/calibrate"
	"sttbench/regular"
	"sttbench/runs"
)

// calibrationPath is where the last calibration of this machine is kept, so that
// runs can state the error of their own times; "" where there is no such place.
func calibrationPath() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sttbench", "calibration.json")
}

// keepCalibration stores a valid calibration for the runs of this machine. It is a
// convenience: what cannot be stored is warned of.
func (a *app) keepCalibration(r *calibrate.Report) {
	path := calibrationPath()
	if path == "" || r.Answers == 0 || r.TTFError == nil || r.TTFError.Bias == nil || r.Lateness == nil {
		return
	}
	data, err := json.Marshal(runs.Harness{
		At: time.Now().UTC().Round(time.Second), Streams: r.Streams, Answers: r.Answers, Stamps: r.Stamps,
		TTFBias: *r.TTFError.Bias, TTFP99: r.TTFError.P99, LateP99: r.Lateness.P99,
	})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err != nil {
		a.warn(err)
	}
}

// calibration is what keepCalibration stored, nil where there is none that can be
// read.
func calibration() *runs.Harness {
	data, err := regular.ReadFile(calibrationPath(), 1<<20)
	if err != nil {
		return nil
	}
	h := new(runs.Harness)
	if json.Unmarshal(data, h) != nil || h.Streams == 0 {
		return nil
	}
	return h
}
