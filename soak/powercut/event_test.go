package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEventsComeBack(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 7)
	events := []event{
		{at: at, what: note, text: "seed 5"},
		{at: at, volume: "long/pod/a", what: publish},
		{at: at, volume: "long/pod/a", what: published, n: 0},
		{at: at, volume: "long/pod/a", what: wrote, n: 12},
		{at: at, volume: "long/pod/a", what: unpublish, lifespan: 1500 * time.Millisecond},
		{at: at, volume: "long/pod/a", what: retained, lifespan: time.Hour},
		{at: at, volume: "long/pod/a", what: gone},
		{at: at, volume: "long/pod/a", what: failed, text: "it is  odd"},
	}
	var lines strings.Builder
	for i := range events {
		events[i].until = at
		lines.WriteString(events[i].String() + "\n")
	}
	got, err := parseEvents(lines.String())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, events) {
		t.Errorf("got  %v\nwant %v", got, events)
	}
}

// TestCutLine: nothing was begun yet that a line announces which is not whole.
func TestCutLine(t *testing.T) {
	t.Parallel()
	got, err := parseEvents("1700000000.000000000 short/p/a publish\n1700000000.000000000 short/p/a wrote 1")
	if err != nil || len(got) != 1 || got[0].what != publish {
		t.Errorf("got %v, %v; want the first line alone", got, err)
	}
}

func TestNoAcks(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "hello", "1 a publish", "1.x a publish", "x.1 a publish", "1.1 a", "1.1 a hurrah", "1.1 a whole",
		"1.1 a wrote", "1.1 a wrote x", "1.1 a unpublish 5", "1.1 a retained",
	} {
		if got, err := parseEvents(line + "\n"); err == nil {
			t.Errorf("%q is taken for %v", line, got)
		}
	}
}
