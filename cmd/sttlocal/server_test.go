package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestConversation(t *testing.T) {
	url, _ := startServer(t, testServer(t, fakeLoad, 1))
	c := dial(t, url+"/any/path")
	c.send(websocket.TextMessage, []byte(`{"config":{"sample_rate":16000}}`))
	if got := c.audio(tone(1500 * time.Millisecond)); got != partialReply("word") {
		t.Errorf("audio: %q, want a partial", got)
	}
	if got := c.text(resetCommand); !strings.Contains(got, `"text" : "word"`) {
		t.Errorf("reset: %q, want a final", got)
	}
	if got := c.text(eofCommand); got != emptyFinal {
		t.Errorf("eof: %q, want %q", got, emptyFinal)
	}
	if code, _ := c.closed(); code != websocket.CloseNormalClosure {
		t.Errorf("close code %d after eof, want %d", code, websocket.CloseNormalClosure)
	}
}

func TestServerCloses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   int
		data   []byte
		code   int
		reason string
	}{
		{"garbage", websocket.TextMessage, []byte("garbage"), 1011, "unknown text message"},
		{"rate", websocket.TextMessage, []byte(`{"config":{"sample_rate":44100}}`), 1011, "sample_rate 44100 is not supported"},
		{"long garbage", websocket.TextMessage, bytes.Repeat([]byte("x"), 1<<16), 1011, "unknown text message"},
		{"huge message", websocket.BinaryMessage, make([]byte, maxMessage+1), 1009, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := startServer(t, testServer(t, fakeLoad, 1))
			c := dial(t, url)
			c.send(tt.kind, tt.data)
			if code, reason := c.closed(); code != tt.code || !strings.Contains(reason, tt.reason) {
				t.Errorf("closed with %d %q, want %d %q", code, reason, tt.code, tt.reason)
			}
		})
	}
}

func TestBiggestMessage(t *testing.T) {
	url, _ := startServer(t, testServer(t, fakeLoad, 1))
	c := dial(t, url)
	c.send(websocket.BinaryMessage, make([]byte, maxMessage))
	if got := c.read(); got != partialReply("") {
		t.Errorf("got %q, want an empty partial", got)
	}
}

func TestIdleClientIsClosed(t *testing.T) {
	srv := testServer(t, fakeLoad, 1)
	srv.idle = 50 * time.Millisecond
	url, _ := startServer(t, srv)
	if code, reason := dial(t, url).closed(); code != 1011 || !strings.Contains(reason, "no message for 50ms") {
		t.Errorf("closed with %d %q, want 1011 and the reason", code, reason)
	}
}

func TestTooManySessions(t *testing.T) {
	url, _ := startServer(t, testServer(t, fakeLoad, 2))
	first, second := dial(t, url), dial(t, url)
	_, resp, err := websocket.DefaultDialer.Dial(url, nil)
	if !errors.Is(err, websocket.ErrBadHandshake) || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("third connection: %v, %v, want HTTP 503", err, resp)
	}
	second.text(resetCommand) // the others do not notice
	first.text(eofCommand)
	first.closed()
	first.conn.Close()
	dialWhenFree(t, url)
}

// dialWhenFree connects once the server has noticed that a client left.
func dialWhenFree(t *testing.T, url string) *client {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		conn, resp, err := websocket.DefaultDialer.Dial(url, nil)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return &client{t, conn}
		}
		if resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Fatal(err)
		}
	}
	t.Fatal("no session became free in 30 s")
	return nil
}

func TestAbruptDisconnect(t *testing.T) {
	url, _ := startServer(t, testServer(t, fakeLoad, 1))
	for range 5 {
		c := dialWhenFree(t, url)
		c.audio(tone(time.Second))
		c.send(websocket.BinaryMessage, pcm(tone(time.Second))) // reply is not read
		c.conn.NetConn().Close()
	}
	if got := dialWhenFree(t, url).text(resetCommand); got != emptyFinal {
		t.Errorf("a new session starts with %q, want %q", got, emptyFinal)
	}
}

func TestStopClosesSessions(t *testing.T) {
	url, stop := startServer(t, testServer(t, fakeLoad, 2))
	a, b := dial(t, url), dial(t, url)
	a.audio(tone(time.Second))
	var clients sync.WaitGroup
	for _, c := range []*client{a, b} {
		clients.Go(func() {
			_, _, err := c.conn.ReadMessage()
			if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
				t.Errorf("got %v, want close code %d", err, websocket.CloseGoingAway)
			}
			c.conn.Close()
		})
	}
	stop()
	clients.Wait()
	if _, _, err := websocket.DefaultDialer.Dial(url, nil); err == nil {
		t.Error("a stopped server accepts connections")
	}
}

func TestPlainHTTP(t *testing.T) {
	url, _ := startServer(t, testServer(t, fakeLoad, 1))
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Get("http" + strings.TrimPrefix(url, "ws"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("status %s, want 426", resp.Status)
	}
}

func TestLoadFailureIsHTTP500(t *testing.T) {
	calls := 0
	srv := testServer(t, func() (decoder, error) {
		if calls++; calls > 2 { // the two loads of warmUp work
			return nil, errors.New("no memory")
		}
		return fakeLoad()
	}, 2)
	url, _ := startServer(t, srv)
	dial(t, url) // has the spare
	_, resp, err := websocket.DefaultDialer.Dial(url, nil)
	if !errors.Is(err, websocket.ErrBadHandshake) || resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("got %v, %v, want HTTP 500", err, resp)
	}
}

// result is a final reply as a client sees it.
type result struct {
	Text   string `json:"text"`
	Result []struct {
		Word             string
		Start, End, Conf float64
	} `json:"result"`
}

func parseResult(t *testing.T, reply string) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(reply), &r); err != nil {
		t.Fatalf("%v in %s", err, reply)
	}
	return r
}

// checkTimes checks that words lie in order between two times in seconds.
func checkTimes(t *testing.T, r result, from, to float64) {
	t.Helper()
	last := from
	for _, w := range r.Result {
		if w.Start < last-1e-6 || w.End <= w.Start || w.End > to || w.Conf < 0 || w.Conf > 1 {
			t.Errorf("%+v is not between %v and %v, or its confidence not in [0,1]", w, last, to)
		}
		last = w.End
	}
}

// TestRealForced streams one recording three times through PocketSphinx and
// forces the end each time; the third time over a new connection.
func TestRealForced(t *testing.T) {
	url, _ := startServer(t, testServer(t, realLoad(t), 2))
	speech := recording(t, "0920")
	length := position(len(speech)).Seconds()
	c := dial(t, url)
	stream := func(c *client) result {
		partials := 0
		begin := time.Now()
		for chunk := range slices.Chunk(speech, 2*count(partialEvery)) {
			if reply := c.audio(chunk); strings.Contains(reply, `"partial" : "`) {
				partials++
			} else {
				t.Errorf("not a partial: %s", reply)
			}
		}
		forced := time.Now()
		r := parseResult(t, c.text(resetCommand))
		t.Logf("real-time factor %.2f, reset %v: %s", time.Since(begin).Seconds()/length, time.Since(forced).Round(time.Millisecond), r.Text)
		if partials == 0 {
			t.Error("no partial")
		}
		for _, word := range []string{"married", "more", "amiable", "woman", "respectable"} {
			if !slices.Contains(strings.Fields(r.Text), word) {
				t.Errorf("%q is not in %q", word, r.Text)
			}
		}
		return r
	}
	first := stream(c)
	checkTimes(t, first, 0, length)
	checkTimes(t, stream(c), length-preRoll.Seconds(), 2*length)
	if got := c.text(resetCommand); got != emptyFinal {
		t.Errorf("second reset: %q, want %q", got, emptyFinal)
	}
	if again := stream(dial(t, url)); again.Text != first.Text {
		t.Errorf("a new connection hears %q, the first one heard %q", again.Text, first.Text)
	}
	if got := c.text(eofCommand); got != emptyFinal {
		t.Errorf("eof: %q, want %q", got, emptyFinal)
	}
	if code, _ := c.closed(); code != websocket.CloseNormalClosure {
		t.Errorf("close code %d, want %d", code, websocket.CloseNormalClosure)
	}
}

// TestRealNatural waits for the final that silence brings.
func TestRealNatural(t *testing.T) {
	url, _ := startServer(t, testServer(t, realLoad(t), 1))
	speech := recording(t, "0930")
	c := dial(t, url)
	for chunk := range slices.Chunk(slices.Concat(speech, silence(2*time.Second)), count(20*time.Millisecond)) {
		reply := c.audio(chunk)
		if strings.Contains(reply, "partial") {
			continue
		}
		r := parseResult(t, reply)
		if !strings.Contains(r.Text, "he might even have been") {
			t.Errorf("got %q", r.Text)
		}
		return
	}
	t.Error("no final within 2 s of silence")
}

// TestRealSessions runs as many sessions as there may be, at once.
func TestRealSessions(t *testing.T) {
	url, _ := startServer(t, testServer(t, realLoad(t), 3))
	speech := recording(t, "0880")
	texts := make([]string, 3)
	var clients sync.WaitGroup
	for i := range texts {
		c := dial(t, url)
		clients.Go(func() {
			for chunk := range slices.Chunk(speech, count(200*time.Millisecond)) {
				if c.conn.WriteMessage(websocket.BinaryMessage, pcm(chunk)) != nil {
					return
				}
				if _, _, err := c.conn.ReadMessage(); err != nil {
					return
				}
			}
			if c.conn.WriteMessage(websocket.TextMessage, []byte(resetCommand)) == nil {
				_, data, _ := c.conn.ReadMessage()
				texts[i] = string(data)
			}
		})
	}
	clients.Wait()
	if !strings.Contains(texts[0], `"word" : "young"`) || texts[1] != texts[0] || texts[2] != texts[0] {
		t.Errorf("sessions disturb each other: %q", texts)
	}
}

// BenchmarkRecognize reports the real-time factor and the latency of a reset
// over the recordings, each with a fresh decoder as in a session.
func BenchmarkRecognize(b *testing.B) {
	load := realLoad(b)
	var audio, busy, reset time.Duration
	finals := 0
	for b.Loop() {
		for _, number := range []string{"0870", "0880", "0890", "0920", "0930"} {
			samples := recording(b, number)
			d, err := load()
			if err != nil {
				b.Fatal(err)
			}
			r := newRecognizer(d)
			begin := time.Now()
			for chunk := range slices.Chunk(samples, count(20*time.Millisecond)) {
				if _, _, err := r.accept(b.Context(), chunk); err != nil {
					b.Fatal(err)
				}
				r.hypothesis()
			}
			forced := time.Now()
			if _, err := r.finish(); err != nil {
				b.Fatal(err)
			}
			busy += time.Since(begin)
			reset += time.Since(forced)
			audio += position(len(samples))
			finals++
			d.Close()
		}
	}
	b.ReportMetric(busy.Seconds()/audio.Seconds(), "rtf")
	b.ReportMetric(reset.Seconds()*1000/float64(finals), "ms/reset")
}
