package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"--pods", "7", "--lifespan", "3s", "--seed", "42"})
	if err != nil || o.pods != 7 || o.lifespan != 3*time.Second || o.seed != 42 || o.volumes != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if o.readOnly != readOnlyShare || o.tolerance != tolerance || o.firstWait != firstWait {
		t.Errorf("%+v: the constants are missing", o)
	}
	if zero, err := parseOptions([]string{"--seed", "0"}); err != nil || zero.seed != 0 {
		t.Errorf("--seed 0 gives seed %d, %v", zero.seed, err)
	}
	for _, wrong := range []string{
		"--pods=0", "--parallel=0", "--volumes=-1", "--lifespan=0s", "--repeat=1.1", "--repeat=NaN", "--cancel=-1",
		"--kills=-1", "--timeout=0s", "--log=", "--log=a/b", "--log=..", "--pods=x", "--nonsense", "argument",
	} {
		if _, err := parseOptions([]string{wrong}); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v, want wrong usage", wrong, err)
		}
	}
}

func TestMakeLayoutRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{
		"not empty": full,
		"too long":  filepath.Join(t.TempDir(), strings.Repeat("x", maxSocketPath)),
	} {
		if _, err := makeLayout(options{dir: dir, log: "daemon.log"}); !errors.Is(err, errUsage) {
			t.Errorf("directory that is %s: %v, want wrong usage", name, err)
		}
	}
}

func TestLayoutRemove(t *testing.T) {
	parent, err := os.MkdirTemp("", "soak-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	made := filepath.Join(parent, "new")
	for _, test := range []struct {
		dir  string
		stay bool
	}{{made, false}, {parent, true}} {
		l, err := makeLayout(options{dir: test.dir, log: "daemon.log"})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.remove(); err != nil {
			t.Fatal(err)
		}
		if there, err := exists(test.dir); err != nil || there != test.stay {
			t.Errorf("%s is there: %t (%v), want %t", test.dir, there, err, test.stay)
		}
		if left, _ := os.ReadDir(parent); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestBackoff(t *testing.T) {
	for n, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if got := backoff(firstWait, n); got != want {
			t.Errorf("wait %d is %s, want %s", n, got, want)
		}
	}
	if got := backoff(firstWait, 1<<20); got != 5*time.Second {
		t.Errorf("after a million failures: %s, want 5s", got)
	}
}

func TestQuantile(t *testing.T) {
	ten := []time.Duration{3, 1, 2, 10, 9, 8, 7, 6, 5, 4}
	for _, test := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 5}, {0.9, 9}, {0.99, 10}, {1, 10}} {
		if got := quantile(ten, test.q); got != test.want {
			t.Errorf("quantile %g is %d, want %d", test.q, got, test.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %d, want 0", got)
	}
}

func TestOutage(t *testing.T) {
	t0 := time.Now()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	d := &daemon{outages: []outage{{at(10), at(12)}, {at(20), time.Time{}}}}
	for _, test := range []struct {
		from, to int
		want     bool
	}{{1, 9, false}, {9, 11, true}, {11, 11, true}, {11, 15, true}, {5, 15, true}, {13, 19, false}, {13, 21, true}, {30, 40, true}} {
		if got := d.down(at(test.from), at(test.to)); got != test.want {
			t.Errorf("a call from %d to %d met an outage: %t, want %t", test.from, test.to, got, test.want)
		}
	}
}
