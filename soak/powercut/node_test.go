package main

import (
	"errors"
	"os"
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
	want := n.place("pod", "a")
	got, err := placeOf([]*node{n}, want.volume)
	if err != nil || got != want {
		t.Errorf("found %+v, %v; want %+v", got, err, want)
	}
	for _, volume := range []string{"", "long", "long/pod", "short/pod/a", "long/pod/a/b"} {
		if p, err := placeOf([]*node{n}, volume); err == nil {
			t.Errorf("%q is taken for %+v", volume, p)
		}
	}
}

// TestTargetDirs: the directories of a pod go with its last volume, and those of
// other pods stay.
func TestTargetDirs(t *testing.T) {
	t.Parallel()
	n := testNode(t)
	a, b := n.place("pod", "a"), n.place("pod", "b")
	for _, p := range []place{a, b} {
		if err := p.makeTargetDir(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(a.target(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := a.removeTargetDir(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.targetDir()); err != nil {
		t.Errorf("the other volume's directory: %v", err)
	}
	if err := b.removeTargetDir(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(n.pods())
	if err != nil || len(entries) != 1 || entries[0].Name() != "bystander" {
		t.Errorf("left are %v, %v; want the bystander", entries, err)
	}
	if err := os.MkdirAll(a.target()+"/busy", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := a.removeTargetDir(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(a.target() + "/busy"); errors.Is(err, os.ErrNotExist) {
		t.Error("something was removed that was not empty")
	}
}
