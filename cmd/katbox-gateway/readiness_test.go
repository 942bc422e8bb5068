package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadiness: a replica waits for the nodes when it starts, and not for ever; later only what it
// needs itself matters.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readiness{}
		want := func(when, part string) {
			t.Helper()
			if err := r.check(); (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", when, err, part)
			}
		}
		want("nothing has started", "starting")
		needed := errors.New("no namespaces")
		expected, connected := 100, 94
		r.need(func() error { return needed })
		want("no port for nodes", "starting")
		r.settle(func() (int, int) { return expected, connected })
		want("something is missing", "no namespaces")
		needed = nil
		want("too few nodes", "94 of 100 nodes")
		connected = 95
		want("enough nodes", "")
		connected = 0
		want("nodes are lost later", "")
		needed = errors.New("no CA")
		want("something is lost later", "no CA")
	})
}

// TestReadinessDoesNotWaitForEver for nodes that are gone.
func TestReadinessDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readiness{}
		r.settle(func() (int, int) { return 3, 0 })
		time.Sleep(settleTime - time.Second)
		if err := r.check(); err == nil {
			t.Error("ready before the nodes had time to connect")
		}
		time.Sleep(time.Second)
		if err := r.check(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		empty := &readiness{}
		empty.settle(func() (int, int) { return 0, 0 })
		if err := empty.check(); err != nil {
			t.Errorf("a cluster without nodes: %v", err)
		}
	})
}
