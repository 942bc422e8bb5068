package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestSame: a list is the same only with the same volumes in the same order.
func TestSame(t *testing.T) {
	now := time.Now()
	one, other := listed{ID: "csi-1", Pod: "a", RetainedAt: now}, listed{ID: "csi-2", Pod: "b", RetainedAt: now}
	size := int64(1)
	measured, later := one, one
	measured.Bytes = &size
	measured.RetainedAt, later.RetainedAt = now.Add(time.Microsecond), now.Add(2*time.Second)
	if err := same([]listed{one, other}, []listed{measured, other}); err != nil {
		t.Error(err)
	}
	for name, after := range map[string][]listed{
		"one is missing": {one}, "one more": {one, other, one}, "another order": {other, one}, "another time": {later, other}, "nothing": nil,
	} {
		if same([]listed{one, other}, after) == nil {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}

// TestSlow: what fails with the files of a pod is the machine's fault once their
// lifespan is over, and only then.
func TestSlow(t *testing.T) {
	s := &story{node: &node{lifespan: time.Hour}}
	failure := errors.New("it failed")
	if err := s.orSlow(&pod{retained: time.Now()}, failure); !errors.Is(err, failure) {
		t.Errorf("in its lifespan: %v", err)
	}
	if err := s.orSlow(&pod{retained: time.Now()}, nil); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
	if err := s.orSlow(&pod{retained: time.Now().Add(-time.Hour)}, failure); !errors.Is(err, errSlow) {
		t.Errorf("after its lifespan: %v", err)
	}
}

// TestNames: the pods and volumes have names as a kubelet gives them.
func TestNames(t *testing.T) {
	if got := podUID("web-0"); len(got) != 36 || strings.Count(got, "-") != 4 {
		t.Errorf("pod UID %s", got)
	}
	if got := volumeID("web-0", "scratch"); len(got) != len("csi-")+64 || got == volumeID("web-1", "scratch") {
		t.Errorf("volume ID %s", got)
	}
}
