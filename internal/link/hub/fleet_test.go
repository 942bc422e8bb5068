package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/model/api"
)

// fleetOf is the environment variable that makes a process play nodes: ADDRESS NUMBER.
const fleetOf = "KATBOX_TEST_FLEET"

func TestMain(m *testing.M) {
	if of := os.Getenv(fleetOf); of != "" {
		playFleet(of)
	}
	os.Exit(m.Run())
}

// playFleet plays nodes until stdin ends. It says "connected" when all are. Its certificates are in
// stdin, up to an empty line.
func playFleet(of string) {
	address, number, _ := strings.Cut(of, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	var ca strings.Builder
	for line := ""; line != "\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			panic(err)
		}
		ca.WriteString(line)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca.String()))
	config := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	full := api.Summary{Full: true}
	for i := range 50 {
		full.Holdings = append(full.Holdings, api.Holding{
			Namespace: fmt.Sprintf("team-%02d-batch", i), NamespaceUID: fmt.Sprintf("0c8ef6ee-%04d-4c65-9bbd-0123456789ab", i), Verdict: "Confirmed",
			Volumes: 20, Newest: time.Now(), Oldest: time.Now().Add(-time.Hour),
		})
	}
	items := strings.Repeat(`{"id":"csi-0123456789012345678901234567890123456789012345678901234567890123",`+
		`"namespace":"ci","pod":"nightly-29000000-x7k2p",`+
		`"podUID":"0c8ef6ee-0000-4c65-9bbd-0123456789ab","volume":"scratch","phase":"Retained","retainedAt":"2026-11-22T03:04:05Z"},`, 8)
	answer := `{"items":[` + items[:len(items)-1] + `]}`
	list := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			conn, err := tls.Dial("tcp", address, config)
			if err != nil {
				panic(err)
			}
			node := fmt.Sprintf("n%d", i)
			if answer, err := ask(conn, request(node, "token-uid-"+node)); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
				panic(fmt.Sprint(answer, err))
			}
			p := serve(conn, list)
			p.say(full)
			var live func()
			live = func() {
				p.say(api.Summary{})
				time.AfterFunc(15*time.Second, live)
			}
			time.AfterFunc(15*time.Second, live)
		})
	}
	all.Wait()
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, in)
	os.Exit(0)
}

// resident returns how much memory the process has that is in use.
func resident(b *testing.B) int64 {
	b.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	return taken(b)
}

// taken returns how much memory the process has.
func taken(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib << 10
}

// benchFleet returns a registry to which so many nodes of another process have connected, unless KATBOX_TEST_NODES says another
// number, and how much memory was in use before.
func benchFleet(b *testing.B, n int) (s *stage, nodes int, before int64) {
	b.Helper()
	if text := os.Getenv("KATBOX_TEST_NODES"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	s = newStage(b)
	s.reviews = rate.NewLimiter(rate.Inf, 1)
	s.limits.wait, s.limits.silence = time.Minute, time.Minute // the machine may have other work
	for i := range n {
		node := fmt.Sprintf("n%d", i)
		s.cluster.add("katbox-"+node, "uid-"+node, node)
	}
	s.listen(func(h *http.Server) { h.ReadHeaderTimeout, h.ReadTimeout = time.Minute, time.Minute })
	before = resident(b)
	play := exec.Command(os.Args[0]) //nolint:gosec // it is this very program
	play.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", fleetOf, s.server.Listener.Addr(), n))
	play.Stderr = os.Stderr
	in, err := play.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := play.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := play.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = play.Wait()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	if _, err := fmt.Fprintf(in, "%s\n", ca); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	for s.Counts().Connected < n || len(s.With("team-07-batch")) < n || len(s.With("nobody")) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	b.Logf("%d nodes have connected in %v", n, time.Since(began).Round(time.Millisecond))
	return s, n, before
}

// BenchmarkIdleConnections says what 2,000 connections take on which nothing runs but summaries, of which each sends two meanwhile.
// KATBOX_TEST_HEAP names a file for a profile of the heap.
func BenchmarkIdleConnections(b *testing.B) {
	_, n, before := benchFleet(b, 2000)
	each := func(bytes int64) float64 { return float64(bytes) / 1024 / float64(n) }
	for b.Loop() {
		time.Sleep(35 * time.Second)
	}
	lives := taken(b) - before
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.Logf("as it lives: %.1f KiB of heap, of which %.1f are free, and %.1f of stacks", each(int64(m.HeapInuse)),
		each(int64(m.HeapInuse-m.HeapAlloc)), each(int64(m.StackInuse)))
	runtime.GC() // a stack shrinks by half in each
	runtime.GC()
	inUse := resident(b) - before
	runtime.ReadMemStats(&m)
	b.ReportMetric(each(lives), "KiB/conn")
	b.ReportMetric(each(inUse), "KiB-in-use/conn")
	b.ReportMetric(each(int64(m.HeapAlloc)), "KiB-heap/conn")
	b.ReportMetric(each(int64(m.HeapInuse-m.HeapAlloc)), "KiB-free/conn")
	b.ReportMetric(each(int64(m.MSpanInuse+m.GCSys+m.OtherSys+m.BuckHashSys)), "KiB-runtime/conn")
	b.ReportMetric(each(int64(m.StackInuse)), "KiB-stacks/conn")
	b.ReportMetric(float64(runtime.NumGoroutine())/float64(n), "goroutines/conn")
	if name := os.Getenv("KATBOX_TEST_HEAP"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if err := pprof.WriteHeapProfile(f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFleet connects nodes of another process, 5,000 unless KATBOX_TEST_NODES says another
// number, and asks all of them for 8 volumes, 256 at a time.
func BenchmarkFleet(b *testing.B) {
	s, n, before := benchFleet(b, 5000)
	b.Logf("%.1f KiB each, %d goroutines", float64(resident(b)-before)/1024/float64(n), runtime.NumGoroutine())
	for b.Loop() {
		var all sync.WaitGroup
		slots := make(chan struct{}, 256)
		for _, h := range s.With("team-07-batch") {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				list, err := h.Conn.Client().List(context.Background(), api.Query{Limit: 8})
				if err != nil || len(list.Items) != 8 {
					b.Error(len(list.Items), err)
				}
			})
		}
		all.Wait()
	}
	b.Logf("after the lists: %.1f KiB each", float64(resident(b)-before)/1024/float64(n))
	began := time.Now()
	s.With("team-07-batch")
	with := time.Since(began)
	began = time.Now()
	s.Missing()
	b.Logf("With takes %v, Missing %v", with, time.Since(began))
}
