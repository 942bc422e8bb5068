package archiver

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// TestLostVolume: one that a pod uses again while it is copied is not archived, and that is no failure.
func TestLostVolume(t *testing.T) {
	for name, at := range map[string]int{"at the first piece": 1, "at the index": 3} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := n.add(1, volume.Failed, someFiles(4))
			other := n.add(2, volume.Failed, map[string][]byte{"a": []byte("x")})
			var count atomic.Int64
			n.fault = func(http.ResponseWriter, *http.Request) bool {
				if int(count.Add(1)) == at {
					v.lose(errPublished)
				}
				return false
			}
			n.start()
			n.until("the other one is archived", n.isNoted(other))
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.isNoted(v)() {
				t.Error("it is noted as archived")
			}
			for name, value := range metricstest.Of(t, n.metrics) {
				if strings.HasPrefix(name, "katbox_archive_failures_total") && value != 0 {
					t.Errorf("%s is counted", name)
				}
			}
		})
	}
}

// TestGoesOn: an archiver that takes over uploads only what the bucket does not have, whenever the one before it ended.
func TestGoesOn(t *testing.T) {
	for ends := 1; ends <= 3; ends++ {
		n := newNode(t)
		content := someFiles(5)
		v := n.add(1, volume.Failed, content)
		reached := make(chan struct{})
		var count atomic.Int64
		n.fault = func(_ http.ResponseWriter, r *http.Request) bool {
			if int(count.Add(1)) != ends {
				return false
			}
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the archiver has gone
			close(reached)
			<-r.Context().Done()
			return true
		}
		first, err := start(n.config, n.pace)
		must(t, err)
		<-reached
		n.stop(first)
		n.until("the bucket has what arrived", func() bool { return n.running == 0 })
		n.wantNotArchived(v)
		there := len(n.keys(v))
		n.mu.Lock()
		n.fault, n.puts = nil, 0
		n.mu.Unlock()
		n.start()
		n.until("it is archived", n.isNoted(v))
		n.wantArchived(v, content)
		n.mu.Lock()
		if n.puts != 2+1-there {
			t.Errorf("%d uploads, and %d objects were there", n.puts, there)
		}
		n.mu.Unlock()
	}
}

// TestTooLarge: what is larger than allowed, by what it takes or by its tar, is given up, and so is what no kubelet named.
func TestTooLarge(t *testing.T) {
	n := newNode(t)
	n.config.Max = 8 << 20
	large := n.add(1, volume.Failed, someFiles(6))
	measured := n.add(2, volume.Failed, nil)
	measured.description.Size.Bytes = 9 << 20
	named := n.add(3, volume.Failed, nil)
	named.description.Record.ID = "my-volume"
	small := n.add(4, volume.Failed, map[string][]byte{"a": []byte("x")})
	n.start()
	n.until("the small one is archived", n.isNoted(small))
	n.wantNotArchived(large)
	n.wantNotArchived(measured)
	if got := n.failures(tooLarge); got != 2 {
		t.Errorf("%v are too large", got)
	}
	if got := n.failures(noKubelet); got != 1 {
		t.Errorf("%v are named otherwise", got)
	}
}

// TestStop: failures are still archived when the daemon stops, and nothing else, as long as it may take.
func TestStop(t *testing.T) {
	n := newNode(t)
	first := n.add(1, volume.Failed, map[string][]byte{"a": []byte("x")})
	second := n.add(2, volume.Failed, map[string][]byte{"a": []byte("y")})
	third := n.add(3, volume.Succeeded, map[string][]byte{"a": []byte("z")})
	reading, goOn := make(chan struct{}), make(chan struct{})
	n.begun = func(v *fakeVolume) {
		if v == first {
			close(reading)
			<-goOn
		}
	}
	a, err := start(n.config, n.pace)
	must(t, err)
	<-reading
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.Stop(context.Background())
	}()
	n.until("it stops", a.draining.Load)
	close(goOn)
	<-stopped
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.isNoted(first)() || !n.isNoted(second)() || n.isNoted(third)() {
		t.Errorf("archived are %v", n.noted)
	}
}

// TestStopCutsASuccessShort: the copy of a volume that is not that of a failure holds up neither the stop nor a failure.
func TestStopCutsASuccessShort(t *testing.T) {
	n := newNode(t)
	success := n.add(1, volume.Succeeded, map[string][]byte{"a": []byte("x")})
	uploading := make(chan struct{})
	var once sync.Once
	n.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, string(success.description.Record.Pod)) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the archiver has gone
		once.Do(func() { close(uploading) })
		<-r.Context().Done()
		return true
	}
	n.pace.upload = time.Hour
	a, err := start(n.config, n.pace)
	must(t, err)
	<-uploading
	failed := n.add(2, volume.Failed, map[string][]byte{"a": []byte("y")})
	a.Stop(context.Background())
	n.wantNotArchived(success)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.isNoted(failed)() || len(n.lines) != 1 {
		t.Errorf("archived are %v, the log is %q", n.noted, n.lines)
	}
}

// TestFailureGoesFirst: the copy of a success gives way to a volume that has failed meanwhile, sends no piece twice when it goes on, and
// ends though there are always more failures.
func TestFailureGoesFirst(t *testing.T) {
	n := newNode(t)
	success := n.add(1, volume.Succeeded, someFiles(7))
	puts, uploading := map[string]int{}, make(chan struct{})
	n.pace.upload = time.Hour
	failures := 0
	n.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, string(success.description.Record.Pod)) {
			return false
		}
		n.mu.Lock()
		puts[r.URL.Path]++
		hangs := len(puts) == 2 && failures < mostGivenWay // the second of two pieces is on its way
		n.mu.Unlock()
		if hangs {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the archiver has gone
			uploading <- struct{}{}
			<-r.Context().Done()
		}
		return hangs
	}
	a := n.start()
	for i := range mostGivenWay {
		<-uploading
		for len(n.keys(success)) == 0 { // else the first piece is not there yet, and is sent again
			time.Sleep(time.Millisecond)
		}
		failed := n.add(2+i, volume.Failed, map[string][]byte{"a": []byte("x")})
		a.Wake()
		n.until("the failure is archived", n.isNoted(failed))
		n.wantNotArchived(success)
		n.mu.Lock()
		failures++
		n.mu.Unlock()
	}
	n.until("the success is archived", n.isNoted(success))
	n.mu.Lock()
	defer n.mu.Unlock()
	again := 0
	for path, times := range puts {
		if again += times - 1; strings.HasSuffix(path, "/index") && times > 1 {
			t.Errorf("%d uploads of the index", times)
		}
	}
	if again > mostGivenWay || len(n.lines) != 1+mostGivenWay {
		t.Errorf("%v, the log is %q", puts, n.lines)
	}
}

// TestGivesWayNotForEver: where there is always one more failure, a copy is whole now and then, of whichever volume.
func TestGivesWayNotForEver(t *testing.T) {
	t.Parallel()
	a, cuts := &Archiver{}, 0
	for range 2 {
		for range 2 * mostGivenWay {
			end := a.givesWay(1, func() { cuts++ })
			a.failureWaits(2)
			a.failureWaits(3) // it was cut already
			end()
		}
		a.wasWhole()
	}
	if cuts != 2*mostGivenWay {
		t.Errorf("%d copies were cut, want %d", cuts, 2*mostGivenWay)
	}
	if a.failureWaits(1000); a.gave != 0 {
		t.Errorf("gave way %d times while nothing runs", a.gave)
	}
}

// TestGivesWayToNoStaleLook: a look that began before that which has chosen the copy may have found a failure that is copied by now.
func TestGivesWayToNoStaleLook(t *testing.T) {
	t.Parallel()
	a, cut := &Archiver{later: map[volume.ID]another{}}, false
	watch, _, _ := a.leftOut()
	run, _, _ := a.leftOut()
	defer a.givesWay(run, func() { cut = true })()
	if a.failureWaits(watch); cut {
		t.Error("it was cut for what the look for it had not found")
	}
	watch, _, _ = a.leftOut()
	if a.failureWaits(watch); !cut {
		t.Error("it was not cut for a failure that waits")
	}
}

// TestStopWhileNothingSucceeds: a bucket that is away holds up no stop.
func TestStopWhileNothingSucceeds(t *testing.T) {
	n := newNode(t)
	n.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	v := n.add(1, volume.Failed, map[string][]byte{"a": []byte("x")})
	a, err := start(n.config, n.pace)
	must(t, err)
	n.until("it fails", func() bool { return n.puts > 2 })
	a.Stop(context.Background())
	n.wantNotArchived(v)
}

// TestOutage: once the bucket is back, each volume is archived once.
func TestOutage(t *testing.T) {
	n := newNode(t)
	var away atomic.Bool
	away.Store(true)
	var order []string
	n.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		if strings.HasSuffix(r.URL.Path, "/index") {
			n.mu.Lock()
			order = append(order, strings.Split(r.URL.Path, "/")[4])
			n.mu.Unlock()
		}
		return false
	}
	var want []string
	for i := range 5 {
		v := n.add(i, volume.Failed, map[string][]byte{"a": {byte(i)}})
		want = append(want, string(v.description.Record.Pod))
	}
	// What keeps all from being archived makes no volume wait for long, and none once that is over.
	n.pace.volume.First, n.pace.volume.Longest = time.Hour, time.Hour
	n.pace.all.Longest = 200 * time.Millisecond
	n.start()
	n.until("it fails", func() bool { return n.puts > 20 })
	away.Store(false)
	n.until("all are archived", func() bool { return len(n.noted) == 5 })
	// The first one is that which was tried when the bucket came back.
	want = append([]string{order[0]}, slices.DeleteFunc(want, func(pod string) bool { return pod == order[0] })...)
	if !slices.Equal(order, want) {
		t.Errorf("%q, want each once, in this order: %q", order, want)
	}
}
