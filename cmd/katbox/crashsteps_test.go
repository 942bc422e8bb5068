package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stepCrash kills a daemon at each point that a call reaches.
type stepCrash struct {
	d *daemon
	// of tells which points are played.
	of func(point string) bool
	// ready may be nil. A daemon that was started again is ready for a call when it returns no error.
	ready func() error
	// met are the points that were reached, at are those of crashes, of which so many were played.
	met, at map[string]bool
	played  int
}

// newStepCrash starts a daemon with crash points.
func newStepCrash(d *daemon, binary string, of func(point string) bool) *stepCrash {
	d.t.Helper()
	c := &stepCrash{d: d, of: of, met: map[string]bool{}, at: map[string]bool{}}
	d.program, d.env = binary, []string{pointsVariable + "=" + c.points()}
	must(d.t, os.Mkdir(c.points(), 0o700))
	d.start()
	return c
}

func (c *stepCrash) points() string { return filepath.Join(c.d.dir, "points") }

// trace returns the points that were reached so far.
func (c *stepCrash) trace() []string {
	c.d.t.Helper()
	content, err := os.ReadFile(filepath.Join(c.points(), "trace"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.d.t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(content), "\n"), "\n"), func(line string) bool {
		_, name, _ := strings.Cut(line, " ")
		return !c.of(name)
	})
}

// crashStep is a call, what makes the node ready for it, and what checks the node and makes it as it was.
type crashStep struct {
	name          string
	prepare, call func() error
	after         func() error
}

// play makes the call once without a crash, and then with a crash before each change that it makes, and after the
// last. A crash after another one is the same as before the next. With -short there is one crash at a point, whatever
// the calls are that reach it. The kubelet repeats a call until it is answered
// with a success.
func (c *stepCrash) play(step crashStep) {
	c.d.t.Helper()
	must(c.d.t, step.prepare())
	from := len(c.trace())
	must(c.d.t, step.call())
	trace := c.trace()[from:]
	must(c.d.t, step.after())
	for _, point := range trace {
		_, name, _ := strings.Cut(point, " ")
		c.met[name] = true
	}
	began := time.Now()
	for i, o := range occurrences(trace, 0) {
		if strings.HasPrefix(o.point, "after ") && i != len(trace)-1 || testing.Short() && c.at[o.point] {
			continue
		}
		c.at[o.point] = true
		c.played++
		must(c.d.t, step.prepare())
		kill := filepath.Join(c.points(), "kill")
		must(c.d.t, os.WriteFile(kill+".new", fmt.Appendln(nil, o.point, o.time), 0o600))
		must(c.d.t, os.Rename(kill+".new", kill))
		err := step.call()
		if taken := os.Remove(kill); !errors.Is(taken, os.ErrNotExist) {
			must(c.d.t, taken)
			// A repeated look at something that was not ready yet need not come again.
			c.d.t.Logf("%s did not reach %s for the %d. time: %v", step.name, o.point, o.time, err)
		} else {
			c.d.wait()
			c.d.start()
			if c.ready != nil {
				c.d.repeat("be ready after a crash "+o.point, c.ready)
			}
			c.d.repeat(fmt.Sprintf("%s, killed %s", step.name, o.point), step.call)
		}
		if err := step.after(); err != nil {
			c.d.t.Fatalf("%s, killed %s (%d. time): %v\n%s", step.name, o.point, o.time, err, c.d.stdout)
		}
	}
	c.d.t.Logf("%s: %d changes, %d crashes so far, %s", step.name, len(trace)/2, c.played, time.Since(began).Round(time.Second))
}

// repeat repeats a call until it succeeds.
func (d *daemon) repeat(what string, call func() error) {
	d.t.Helper()
	for deadline := time.Now().Add(3 * hangs); ; time.Sleep(50 * time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: still %v\n%s", what, err, d.stdout)
		}
	}
}
