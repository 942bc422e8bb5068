package main

import (
	"reflect"
	"testing"
)

// testNode is a node whose daemon is never started.
func testNode(t *testing.T) *node {
	t.Helper()
	n, err := newNode(options{dir: t.TempDir(), logs: t.TempDir(), daemon: "/nonexistent"}, "long", 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	n := testNode(t)
	for _, name := range []string{"a", failing} {
		want := n.place("pod", name)
		got, err := placeOf([]*node{n}, want.volume)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("found %+v, %v; want %+v", got, err, want)
		}
	}
	for _, volume := range []string{"", "long", "long/pod", "short/pod/a", "long/pod/a/b"} {
		if p, err := placeOf([]*node{n}, volume); err == nil {
			t.Errorf("%q is taken for %+v", volume, p)
		}
	}
}
