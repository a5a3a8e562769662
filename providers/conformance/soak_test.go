//go:build soak

package conformance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sttbench/endpoint"
	"sttbench/providers/deepgram"
	"sttbench/providers/emulator"
	"sttbench/streamer"
)

// TestSoak runs 100 streams with random faults for STTBENCH_SOAK (10m): memory must
// stay constant after the warm-up, nothing may be left running, and the classes must
// add up to the sessions. The emulators are in the process, and in the figures.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("STTBENCH_SOAK"))
	if err != nil {
		length = 10 * time.Minute
	}
	const streams = 100
	idle := runtime.NumGoroutine()
	vendor := deepgramBrief
	// A client that a server does not read from leaves unnoticed, until this.
	vendor.Emulator = deepgram.Emulator{Interim: 100 * time.Millisecond, Idle: 5 * time.Second}
	servers, stop := soakServers(t, vendor)
	str := streamer.New()
	var started, ended atomic.Int64
	var mu sync.Mutex
	classes := map[endpoint.Class]int64{}
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for time.Now().Before(end) {
				started.Add(1)
				url := servers[rnd.IntN(len(servers))]
				j := prepare(vendor, kase{turns: brief}, url)
				j.Open.Target.Deadline = briefDeadline
				j.ConnectTimeout, j.FinishTimeout = briefConnect, briefFinish
				rec, err := str.Stream(t.Context(), j)
				if err != nil {
					t.Error(err)
					return
				}
				turns := endpoint.Outcomes(rec, endpoint.Rules{}).Turns
				mu.Lock()
				for _, o := range turns {
					classes[o.Class]++
				}
				mu.Unlock()
				ended.Add(1)
			}
		})
	}
	heaps := watch(t, length, &ended)
	wg.Wait()
	stop()

	sum := int64(0)
	for _, c := range endpoint.Classes() {
		if n := classes[c]; n > 0 {
			t.Logf("%-15s %d", c, n)
			sum += n
		}
	}
	if sum != started.Load() || ended.Load() != started.Load() {
		t.Errorf("%d sessions started, %d ended, %d turns in classes", started.Load(), ended.Load(), sum)
	}
	if classes[endpoint.OK] == 0 || len(classes) < 5 {
		t.Error("the faults did not do what they are for")
	}
	steady(t, heaps)
	for range 100 { // the last goroutines may still be on their way out
		if runtime.NumGoroutine() <= idle {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines at the start, %d at the end", idle, runtime.NumGoroutine())
}

// soakServers starts an emulator for each fault, and some without.
func soakServers(t *testing.T, v Vendor) (urls []string, stop func()) {
	faults := []string{"", "", "no-partials", "no-ack", "empty-ack", "split-final=80ms", "final-before-force", "duplicate-final",
		"unsolicited-final", "out-of-order-partials", "garbage", "binary-garbage", "unknown-type", "huge-message=9",
		"silent", "half-open", "slow-read=20000", "never-read", "close=1011", "close=4000", "abrupt-close", "reset", "refuse=429:1s",
		"refuse=503", "hang-handshake", "garbage split-final=50ms duplicate-final", "out-of-order-partials reset=300ms"}
	var all []*emulator.Server
	for i, names := range faults {
		s := emulator.Settings{Script: script(brief), FinalDelay: emulator.Delay{Base: finalDelay}, Seed: uint64(i)}
		for _, name := range strings.Fields(names) {
			f, err := emulator.ParseFault(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Faults = append(s.Faults, f)
		}
		srv, err := emulator.Start(t.Context(), v.Emulator, s)
		if err != nil {
			t.Fatal(err)
		}
		all, urls = append(all, srv), append(urls, srv.URL())
	}
	return urls, func() {
		for _, s := range all {
			s.Close()
		}
	}
}

// watch samples the live heap while the soak runs.
func watch(t *testing.T, length time.Duration, ended *atomic.Int64) (heaps []float64) {
	const samples = 20
	for i := range samples {
		time.Sleep(length/samples - 600*time.Millisecond)
		var live [3]float64
		for k := range live { // the least of a few: sessions come and go
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			live[k] = float64(m.HeapAlloc) / (1 << 20)
			time.Sleep(200 * time.Millisecond)
		}
		heap := min(live[0], live[1], live[2])
		heaps = append(heaps, heap)
		t.Log(fmt.Sprintf("%3d %% %d sessions, heap %.1f MiB, %d goroutines", 100*(i+1)/samples, ended.Load(), heap, runtime.NumGoroutine()))
	}
	return heaps
}

// steady compares the mean of the first half after the warm-up with that of the
// second.
func steady(t *testing.T, heaps []float64) {
	mean := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum / float64(len(v))
	}
	warm := heaps[len(heaps)/5:]
	first, second := mean(warm[:len(warm)/2]), mean(warm[len(warm)/2:])
	t.Logf("live heap: %.1f MiB, then %.1f MiB", first, second)
	if second > first*1.1 {
		t.Errorf("live heap grew from %.1f to %.1f MiB", first, second)
	}
}
