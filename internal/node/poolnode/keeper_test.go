package poolnode

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/kubeapi"
)

// api is an API server with one PoolNode at most.
type api struct {
	mu sync.Mutex
	// away is the answer to all requests, unless it is nil; hangs: there is none.
	away  error
	hangs bool
	node  *kubeapi.NewNode
	asked []time.Duration
	since time.Time
}

func (a *api) answer(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, time.Since(a.since))
	if a.hangs {
		a.mu.Unlock()
		<-ctx.Done()
		a.mu.Lock()
		return ctx.Err()
	}
	return a.away
}

func (a *api) ClusterID(ctx context.Context) (string, error) { return "uid", a.answer(ctx) }

func (a *api) EnsureNode(ctx context.Context, n kubeapi.NewNode) (kubeapi.Change, error) {
	if err := a.answer(ctx); err != nil {
		return kubeapi.Unchanged, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	change := kubeapi.Corrected
	switch {
	case a.node == nil:
		change = kubeapi.Made
	case a.node.IQN == n.IQN && slices.Equal(a.node.Addresses, n.Addresses):
		change = kubeapi.Unchanged
	}
	a.node = &n
	return change, nil
}

func (a *api) set(change func(*api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *api) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// says fails unless the PoolNode has an address; "" for no PoolNode.
func (a *api) says(t *testing.T, address string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case address == "" && a.node != nil:
		t.Errorf("the PoolNode is %+v", *a.node)
	case address != "" && (a.node == nil || a.node.Name != "node-1" || !slices.Equal(a.node.Addresses, []string{address}) ||
		a.node.IQN != pools.IQN("node-1", "uid")):
		t.Errorf("the PoolNode is %+v, want the address %s", a.node, address)
	}
}

// host is a node whose addresses change.
type host struct {
	mu        sync.Mutex
	addresses []netip.Addr
}

func (h *host) set(s ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addresses = addresses(s...)
}

func (h *host) read() ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addresses, nil
}

func noRoute(netip.Prefix, []netip.Addr) netip.Addr { return netip.Addr{} }

// lines are the lines of a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) log() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, prefix+args)
	}, funcr.Options{})
}

func (l *lines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// wait lets time pass. The time that the keeper takes for its work is 0.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestThePoolNodeIsKeptRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, h, log := &api{since: time.Now()}, &host{}, &lines{}
		h.set("10.9.0.7", "192.168.1.4")
		k := start(Config{API: a, Node: "node-1", Network: netip.MustParsePrefix("10.9.0.0/16"), Log: log.log()}, usualPace, h.read, noRoute)
		defer k.Stop()
		synctest.Wait()
		a.says(t, "10.9.0.7")
		if iqn, err := k.IQN(t.Context()); err != nil || iqn != pools.IQN("node-1", "uid") {
			t.Errorf("the IQN is %q, error %v", iqn, err)
		}

		a.set(func(a *api) { a.node = nil })
		wait(90 * time.Second)
		a.says(t, "10.9.0.7")
		a.set(func(a *api) { a.node = &kubeapi.NewNode{Name: "node-1", Addresses: []string{"1.1.1.1"}} })
		wait(90 * time.Second)
		a.says(t, "10.9.0.7")

		// Another address is there before the former one goes, and the PoolNode follows at once.
		h.set("10.9.0.7", "10.9.0.3", "192.168.1.4")
		wait(20 * time.Second)
		a.says(t, "10.9.0.7")
		h.set("10.9.0.3", "192.168.1.4")
		wait(20 * time.Second)
		a.says(t, "10.9.0.3")

		// Without an address the PoolNode stays as it was: the array lets in what comes from it.
		h.set("192.168.1.4")
		wait(5 * time.Minute)
		a.says(t, "10.9.0.3")
		if log.count("no address of this node is in the storage network 10.9.0.0/16") == 0 {
			t.Errorf("logged %q", log.all)
		}
		h.set("10.9.0.3")
		wait(2 * time.Minute)
		if log.count("kept right again") != 1 {
			t.Errorf("logged %q", log.all)
		}

		// A node that changes nothing asks once per minute.
		before := a.requests()
		wait(time.Hour)
		if n := a.requests() - before; n < 45 || n > 80 {
			t.Errorf("asked %d times in an hour", n)
		}
	})
}

// TestAnAPIServerThatIsAway neither blocks nor is asked again and again.
func TestAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, h, log := &api{since: time.Now(), away: errors.New("connection refused")}, &host{}, &lines{}
		var up []bool
		k := start(Config{API: a, Node: "node-1", Given: addresses("10.0.0.1"), Log: log.log(),
			Up: func(is bool) { up = append(up, is) }}, usualPace, h.read, noRoute)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.IQN(ctx); !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("the IQN: %v", err)
		}
		wait(time.Hour)
		if n := a.requests(); n < 50 || n > 90 {
			t.Errorf("asked %d times in the first hour, at %v", n, a.asked)
		}
		if n := log.count("connection refused"); n < 4 || n > 8 {
			t.Errorf("logged %d times in the first hour: %q", n, log.all)
		}
		a.says(t, "")
		a.set(func(a *api) { a.away = nil })
		wait(2 * time.Minute)
		a.says(t, "10.0.0.1")

		a.set(func(a *api) { a.hangs = true })
		wait(10 * time.Minute)
		k.Stop() // it does not wait for an answer
		if up[0] || !up[len(up)-1] {
			t.Errorf("up: %v", up)
		}
		if _, err := k.IQN(t.Context()); err != nil {
			t.Errorf("the IQN, later: %v", err)
		}
	})
}
