package calibrate

import (
	"context"
	"net"
	"time"
)

// exchangeEvery is the time between bare exchanges: as often as one stream forces.
const exchangeEvery = 50 * time.Millisecond

// message is about as long as a forced endpoint on the wire.
var message = [32]byte{}

// Echo sends back what it receives on each connection of l, until ctx is done.
func Echo(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			// Not io.Copy: that would splice within the kernel.
			buf := make([]byte, 1024)
			for {
				n, err := conn.Read(buf)
				if err != nil {
					return
				}
				if _, err := conn.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
	}
}

// exchange times round trips for a while. kernel tells whether all ends are the
// kernel's stamps.
func (b *bareConn) exchange(ctx context.Context, length time.Duration) (trips []time.Duration, kernel bool, err error) {
	end := time.NewTimer(length)
	defer end.Stop()
	tick := time.NewTicker(exchangeEvery)
	defer tick.Stop()
	unblock := context.AfterFunc(ctx, b.close)
	defer unblock()
	kernel = true
	for {
		select {
		case <-end.C:
			return trips, kernel, nil
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-tick.C:
		}
		trip, stamped, err := b.roundTrip()
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			return nil, false, err
		}
		trips, kernel = append(trips, trip), kernel && stamped
	}
}
