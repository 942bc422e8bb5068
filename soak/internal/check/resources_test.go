package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
)

// newBudget is a checker of a driver that has just started.
func newBudget(t *testing.T) (*Checker, *history.Findings) {
	t.Helper()
	findings := &history.Findings{}
	c := &Checker{cfg: Config{Work: t.TempDir(), Findings: findings}, excused: map[string]bool{}}
	for _, name := range []string{".trash", ".katbox.db", "pod"} {
		if err := os.Mkdir(filepath.Join(c.cfg.Work, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.Started(Resources{Memory: 20 << 20, Descriptors: 16, Threads: 14})
	return c, findings
}

// found is what the findings say, of the one promise.
func found(t *testing.T, f *history.Findings) string {
	t.Helper()
	var all []string
	for _, v := range f.All() {
		if v.Promise != history.NoLeak {
			t.Errorf("broken is %q, want %q", v.Promise, history.NoLeak)
		}
		all = append(all, v.What)
	}
	return strings.Join(all, "; ")
}

func TestResources(t *testing.T) {
	const calls = 20
	for _, test := range []struct {
		name   string
		has    Resources
		volume int // known at a time
		says   []string
	}{
		{"nothing more", Resources{20 << 20, 16, 14}, 0, nil},
		{"less", Resources{10 << 20, 8, 7}, 0, nil},
		{"as much as may be", Resources{53 << 20, 20, 66}, 0, nil},
		{"a mebibyte of each publish", Resources{54 << 20, 16, 14}, 0, []string{"54 MiB of memory, 34 more", "33 more are enough"}},
		{"memory for many volumes", Resources{54 << 20, 16, 14}, 128, nil},
		{"too much for many volumes", Resources{55 << 20, 16, 14}, 128, []string{"55 MiB of memory", "128 volumes", "34 more are enough"}},
		{"descriptors", Resources{20 << 20, 21, 14}, 0, []string{"21 files open, and had 16"}},
		{"threads", Resources{20 << 20, 16, 67}, 0, []string{"67 threads, and had 14", "66 are enough"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, findings := newBudget(t)
				c.Sample(time.Now(), 0, 0, test.volume/2, test.volume-test.volume/2)
				if err := c.CheckAtRest(t.Context(), func() (Resources, bool) { return test.has, true }, calls); err != nil {
					t.Fatal(err)
				}
				said := found(t, findings)
				for _, text := range test.says {
					if !strings.Contains(said, text) {
						t.Errorf("it says %q, want %q in it", said, text)
					}
				}
				if (said == "") != (test.says == nil) {
					t.Errorf("it says %q, want %q", said, test.says)
				}
			})
		})
	}
}

// TestConnectionsMayClose: a driver learns a moment later that its clients are gone.
func TestConnectionsMayClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, findings := newBudget(t)
		looks := 0
		if err := c.CheckAtRest(t.Context(), func() (Resources, bool) {
			looks++
			return Resources{20 << 20, 40 - looks, 14}, true
		}, 1); err != nil {
			t.Fatal(err)
		}
		if said := found(t, findings); said != "" {
			t.Errorf("it says %q", said)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.CheckAtRest(ctx, func() (Resources, bool) { return Resources{20 << 20, 40, 14}, true }, 1); err == nil {
			t.Error("no error at the end of the run")
		}
	})
}

// TestStartedAgain: what a process may have counts from its own start.
func TestStartedAgain(t *testing.T) {
	c, findings := newBudget(t)
	c.Started(Resources{Memory: 30 << 20, Descriptors: 16, Threads: 14})
	c.CheckMemory(Resources{Memory: 62 << 20}, 0)
	if said := found(t, findings); said != "" {
		t.Errorf("it says %q", said)
	}
	c.CheckMemory(Resources{Memory: 63 << 20}, 0)
	if said := found(t, findings); !strings.Contains(said, "63 MiB of memory, 33 more") {
		t.Errorf("it says %q", said)
	}
}

func TestLeft(t *testing.T) {
	c, findings := newBudget(t)
	c.excuse(&history.Volume{Data: filepath.Join(c.cfg.Work, "pod", "a")})
	if err := c.CheckLeft(1); err != nil {
		t.Fatal(err)
	}
	if said := found(t, findings); said != "" {
		t.Errorf("it says %q", said)
	}
	if err := os.Mkdir(filepath.Join(c.cfg.Work, ".left"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.CheckLeft(2); err != nil {
		t.Fatal(err)
	}
	said := found(t, findings)
	for _, text := range []string{"but for 1 that it may know still, and the driver has 2 on record", "not there after its start: 1: .left"} {
		if !strings.Contains(said, text) {
			t.Errorf("it says %q, want %q in it", said, text)
		}
	}
}

// TestStacks: a target that is mounted twice is reported once, and not while a call runs.
func TestStacks(t *testing.T) {
	findings := &history.Findings{}
	c := &Checker{cfg: Config{Work: t.TempDir(), Kubelet: "/kubelet", Findings: findings}, byVolume: make(map[*history.Volume]*published)}
	var points []string
	c.cfg.MountsBelow = func(string) ([]string, error) { return points, nil }
	v := &history.Volume{ID: "v", Target: "/kubelet/a"}
	c.Published(v)
	points = []string{"/kubelet/a", "/kubelet/b", "/kubelet/b"}
	c.lookAtStacks()
	call := v.Begin(history.Publish, false)
	points = append(points, "/kubelet/a")
	c.lookAtStacks()
	if n := findings.Sum(); n != 0 {
		t.Errorf("%d violations, want none", n)
	}
	v.End(call, nil)
	c.lookAtStacks()
	c.lookAtStacks()
	if n := findings.Number(history.AnyOrder); n != 1 || findings.Sum() != 1 {
		t.Errorf("%d violations, %d of them of %q, want 1", findings.Sum(), n, history.AnyOrder)
	}
}

func TestEvictionSlack(t *testing.T) {
	for lifespan, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Second: time.Second, 5 * time.Second: 2500 * time.Millisecond, 12 * time.Hour: 5 * time.Second,
	} {
		if got := evictionSlack(lifespan); got != want {
			t.Errorf("with a lifespan of %s: %s, want %s", lifespan, got, want)
		}
	}
}
