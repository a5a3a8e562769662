package main

import "sync"

// pool hands out decoders that nobody used before. A decoder adapts to the
// speaker it hears and cannot be reset, so a used one would make a text depend
// on who was connected earlier; it is closed instead. One spare is loaded
// while nobody is connected, which keeps the load out of other sessions and
// out of the time that a client waits for its connection.
type pool struct {
	load func() (decoder, error)

	mu     sync.Mutex // held while loading: two loads at once would not be faster
	spare  decoder    // unused, or nil
	closed bool

	refills sync.WaitGroup
}

// get returns a fresh decoder: the spare, or one loaded now.
func (p *pool) get() (decoder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.spare; d != nil {
		p.spare = nil
		return d, nil
	}
	return p.load()
}

// refill loads the spare in the background if there is none. An error is not
// reported: the next get meets it again and has somebody to tell.
func (p *pool) refill() {
	p.refills.Go(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.spare == nil && !p.closed {
			if d, err := p.load(); err == nil {
				p.spare = d
			}
		}
	})
}

// close frees the spare. Nothing is loaded afterwards in the background.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.spare != nil {
		p.spare.Close()
		p.spare = nil
	}
	p.mu.Unlock()
	p.refills.Wait()
}
