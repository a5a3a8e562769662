package streamer

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sttbench/record"
)

func TestLateWritesAreOurs(t *testing.T) {
	const ms = time.Millisecond
	chunk := func(due, start, ret time.Duration) record.Chunk {
		return record.Chunk{Due: due * ms, Start: start * ms, Return: ret * ms}
	}
	got := lateWrites([]record.Chunk{
		chunk(20, 20, 21),
		chunk(40, 44, 45),    // below the floor
		chunk(60, 70, 71),    // ours
		chunk(80, 80, 190),   // the peer does not read
		chunk(100, 190, 191), // so this one could not begin
		chunk(120, 200, 201), // 9 ms of this are ours
	})
	want := []record.Delay{
		{Kind: record.DelayWrite, At: 60 * ms, By: 10 * ms},
		{Kind: record.DelayWrite, At: 191 * ms, By: 9 * ms},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestClientUsage(t *testing.T) {
	from := usage{at: time.Second, gc: 1, cpu: time.Second, steal: 10, total: 1000}
	to := usage{at: 3 * time.Second, gc: 5, cpu: 2 * time.Second, steal: 20, total: 1400}
	c := client(from, to)
	if c.GC != 4 || c.CPU != 0.5 || c.Steal == nil || math.Abs(*c.Steal-0.025) > 1e-9 || c.Cores < 1 {
		t.Errorf("got %+v", c)
	}
	if c := client(usage{}, usage{at: 1}); c.Steal != nil {
		t.Errorf("steal %v where the system does not tell", *c.Steal)
	}
}
