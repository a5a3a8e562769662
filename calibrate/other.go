//go:build !linux

package calibrate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var errUnsupported = fmt.Errorf("calibrate needs Linux: elsewhere two processes share no clock (%w)", errors.ErrUnsupported)

// TakeSample is for Linux only.
func TakeSample() (Sample, error) { return Sample{}, errUnsupported }

// StreamLimit is how many streams this process can have.
func StreamLimit() int { return MaxStreams }

type bareConn struct{}

func dialBare(context.Context, string) (*bareConn, error) { return nil, errUnsupported }
func (*bareConn) close()                                  {}
func (*bareConn) roundTrip() (time.Duration, bool, error) { return 0, false, errUnsupported }
