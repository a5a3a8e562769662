// Package streamer streams one item to one provider and writes down what
// happened: it is the only package that reads a clock and the only one that
// opens a connection to a provider.
//
// A session has two goroutines. The writer owns everything that is sent: audio
// at absolute deadlines, turn ends, replies that the dialect asks for. The reader
// owns everything that is received: it stamps, decodes, and publishes. They share
// no lock, so that decoding a large answer never delays a chunk, and a blocked
// socket never delays a stamp. Chunk k+1 is encoded right after chunk k was
// written, so that the deadline path only writes.
//
// A session always ends in a record, whatever went wrong; an error is returned
// only for a configuration that could not be tried.
package streamer
