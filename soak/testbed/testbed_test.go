package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTargetDirs: the directories of a pod go with its last volume, and those of
// other pods stay.
func TestTargetDirs(t *testing.T) {
	t.Parallel()
	kubelet := t.TempDir()
	a, b := Volume{Kubelet: kubelet, Pod: "pod", Name: "a"}, Volume{Kubelet: kubelet, Pod: "pod", Name: "b"}
	for _, v := range []Volume{a, b} {
		if err := v.MakeTargetDir(); err != nil {
			t.Fatal(err)
		}
	}
	bystander := filepath.Join(kubelet, "pods", "bystander")
	if err := errors.Join(os.Mkdir(bystander, 0o755), os.Mkdir(a.Target(), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := a.RemoveTargetDir(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.TargetDir()); err != nil {
		t.Errorf("the pod's other volume: %v", err)
	}
	if err := b.RemoveTargetDir(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(kubelet, "pods"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "bystander" {
		t.Errorf("the pods are %v, %v; want the bystander alone", entries, err)
	}
	if err := os.MkdirAll(filepath.Join(a.Target(), "busy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := a.RemoveTargetDir(); err != nil {
		t.Errorf("a target that is not empty: %v", err)
	}
	if _, err := os.Stat(filepath.Join(a.Target(), "busy")); err != nil {
		t.Errorf("a target that is not empty: %v", err)
	}
}
