package main

import (
	"context"
	"errors"
	"testing"

	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

// asked is a driver that runs, and notes whether it was asked what it has.
type asked struct {
	daemon.Driver
	was bool
}

func (d *asked) Usage() (host.Usage, bool) { return host.Usage{}, true }

func (d *asked) Descriptors() (int, bool) {
	d.was = true
	return 20, true
}

// TestStartedWithThePoolOpen: a pool and the connection to its controller have files open, so nobody asks what the
// driver has after its start before they are there.
func TestStartedWithThePoolOpen(t *testing.T) {
	l, err := newLocals(testbed.At(t.TempDir()), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.controller.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &asked{}
	s := &environment{driver: d, locals: l, checker: &check.Checker{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no daemon ever connects
	if err := s.started(ctx); !errors.Is(err, context.Canceled) || d.was {
		t.Errorf("%v, asked: %t", err, d.was)
	}
}
