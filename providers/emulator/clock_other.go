//go:build !linux

package emulator

// machineMono has no portable source; stamps then count from the start of the
// server.
func machineMono() int64 { return 0 }
