package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/plugin/cluster"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// watching is a watch whose pauses are steps of a test.
func watching(t *testing.T, c *clustertest.Cluster, o listOptions, stdout io.Writer, steps ...func()) (stderr string, err error) {
	t.Helper()
	client, err := cluster.New(c.Config("vic"), "ci")
	must(t, err)
	var complaints bytes.Buffer
	s := &session{
		Session: &verbs.Session{Stdout: stdout, Stderr: &complaints, Now: time.Now}, client: client, namespace: "ci", warned: map[string]bool{},
	}
	l := &listing{listOptions: &o, s: s, q: target{}.query("ci", "")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = l.follow(ctx, func(ctx context.Context, d time.Duration) error {
		if d < watchPause {
			t.Errorf("it asks again after %v", d)
		}
		if len(steps) == 0 {
			cancel()
			return ctx.Err()
		}
		steps[0]()
		steps = steps[1:]
		return nil
	})
	return complaints.String(), err
}

// TestWatch shows the list, and then what changes. What a node has that does not answer is not gone, and
// an outage of the gateway does not end a watch.
func TestWatch(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	old, _ := n.Put(2, "ci", "nightly", "nightly-x7k2p")
	var added, lost string
	var lines []string
	var out bytes.Buffer
	step := func(f func()) func() { return func() { lines = append(lines, out.String()); out.Reset(); f() } }
	stderr, err := watching(t, c, listOptions{}, &out,
		step(func() {}),
		step(func() { added, _ = n.Put(1, "ci", "nightly", "nightly-a2b3c") }),
		step(func() { n.Measure(2, 5<<20) }),
		step(func() { c.Down(true) }),
		step(func() { c.Down(false); n.Forget(2) }),
		step(func() { lost, _ = c.Node("n2").Put(3, "ci", "weekly", "weekly-z9y8x") }),
		step(func() { c.Lost("n2"); n.Forget(1) }),
	)
	lines = append(lines, out.String())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	want := [][]string{
		{"EVENT", "ADDED", old}, nil, {"ADDED", added}, {"CHANGED", old, "5.0 MiB"}, nil, {"GONE", old}, {"ADDED", lost}, nil,
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lists: %q", len(lines), lines)
	}
	for i, parts := range want {
		if (parts == nil) != (lines[i] == "") {
			t.Errorf("list %d: %q, want %q", i, lines[i], parts)
		}
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("list %d: %q lacks %q", i, lines[i], part)
			}
		}
	}
	if !strings.Contains(stderr, "gateway does not answer") || !strings.Contains(stderr, "asking again") || !strings.Contains(stderr, "n2") {
		t.Errorf("stderr %q", stderr)
	}
}

// TestWatchForPrograms: an event is a line of JSON.
func TestWatchForPrograms(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, _ := n.Put(2, "ci", "nightly", "nightly-x7k2p")
	var out bytes.Buffer
	_, err := watching(t, c, listOptions{output: outputJSON}, &out, func() { n.Forget(2) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	var types []string
	for line := range strings.Lines(out.String()) {
		var event struct {
			Type   string
			Object struct {
				Kind     string
				Metadata struct{ Name, Namespace, UID string }
			}
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.Object.Kind != "RetainedVolume" ||
			event.Object.Metadata.Name != name || event.Object.Metadata.Namespace != "ci" || event.Object.Metadata.UID == "" {
			t.Errorf("event %s: %v", line, err)
		}
		types = append(types, event.Type)
	}
	if !slices.Equal(types, []string{"ADDED", "GONE"}) {
		t.Errorf("events %q", types)
	}
}

// broken is a standard output that nothing reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestWatchEnds: with what the user may not do, at the first list, and without a reader.
func TestWatchEnds(t *testing.T) {
	c := clustertest.New(t)
	c.Node("n1").Put(2, "ci", "nightly", "nightly-x7k2p")
	forbid := func() {
		c.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no", http.StatusForbidden)
			return true
		})
	}
	if _, err := watching(t, c, listOptions{}, io.Discard, forbid); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the user may not list any more, and it ended with %v", err)
	}
	c.Intercept(nil)
	if _, err := watching(t, c, listOptions{}, broken{}, forbid); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("nothing reads, and it ended with %v", err)
	}
	c.Down(true)
	if _, err := watching(t, c, listOptions{}, io.Discard); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the first list failed, and it ended with %v", err)
	}
}

// TestInterruptedWatch has the exit code of an interrupt.
func TestInterruptedWatch(t *testing.T) {
	c, _ := nightly(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.Intercept(func(http.ResponseWriter, *http.Request) bool {
		cancel()
		return false
	})
	if code, _, stderr := as(t, c, "vic").runIn(ctx, "list", "--watch"); code != verbs.CodeInterrupted {
		t.Errorf("code %d, %q", code, stderr)
	}
}
