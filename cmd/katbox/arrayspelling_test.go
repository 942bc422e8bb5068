package main

import (
	"strings"
	"testing"
)

// TestArrayExportSpelledDifferently: an array may write the path of an export with slashes that the kernel leaves
// out of the mount table. The volume is the same.
func TestArrayExportSpelledDifferently(t *testing.T) {
	cluster := newArrayCluster(t)
	a := newArrayDaemon(t, cluster.api.URL())
	a.start()
	v := cluster.attach(t, nfsVolume, "volume")
	export := v.at.Export
	host, path, _ := strings.Cut(export, ":")
	everywhere := strings.ReplaceAll(export, "/", "//")
	for _, spelled := range []string{export + "/", export + "//", host + ":/" + path, everywhere, host + ":/." + path} {
		v.at.Export = spelled
		for range 2 { // the kubelet repeats
			if err := a.volume(v.at, false).Stage(t.Context()); err != nil {
				t.Fatalf("stage %s: %v", spelled, err)
			}
			if err := a.volume(v.at, false).Publish(t.Context()); err != nil {
				t.Errorf("publish %s: %v", spelled, err)
			}
		}
		if err := a.volume(v.at, false).Unpublish(t.Context()); err != nil {
			t.Errorf("unpublish %s: %v", spelled, err)
		}
		if err := a.volume(v.at, false).Unstage(t.Context()); err != nil {
			t.Errorf("unstage %s: %v", spelled, err)
		}
		a.wantNothingLeft(spelled)
	}
}
