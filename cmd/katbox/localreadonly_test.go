package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestLocalDiskTurnsReadOnly under volumes in images.
func TestLocalDiskTurnsReadOnly(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs"} {
		if roottest.LeftOut(fsType) {
			continue
		}
		t.Run(fsType, func(t *testing.T) { diskTurnsReadOnly(t, fsType, "image", roottest.FileSystem(t, fsType, 512)) })
	}
}

// TestLocalQuotaDiskTurnsReadOnly under volumes that are directories with a quota.
func TestLocalQuotaDiskTurnsReadOnly(t *testing.T) {
	roottest.Quotas(t, quota.Enforced.String())
	for fsType, options := range map[string][]string{"ext4": {"-O", "quota,project"}, "xfs": nil} {
		t.Run(fsType, func(t *testing.T) {
			diskTurnsReadOnly(t, fsType, "projectQuota", roottest.QuotaFileSystem(t, fsType, 512, options...))
		})
	}
}

// diskTurnsReadOnly: the disk of a pool takes no more writes. A pod that runs reads what it has there, a pod that ends leaves
// its volume, and for the volumes of others nothing is answered that did not happen. With the disk mounted anew all is as
// it was, and goes on.
func diskTurnsReadOnly(t *testing.T, fsType, backend, mounted string) {
	disk := filepath.Join(mounted, "pool")
	s := newLocalScene(t, "--local-pool", "fast="+disk+",backend="+backend)
	comment := pools.Comment{Retained: &pools.Retention{Since: time.Now()}}.String()
	retain := func(id string) error {
		_, err := s.node.CommentVolume(t.Context(), s.pool, id, comment)
		return err
	}
	create := func(id string) error {
		_, err := s.node.CreateVolume(t.Context(), s.pool, local.NewVolume{Name: id, Size: 32 * mebi, FSType: "ext4"})
		return err
	}
	for _, id := range []string{"pvc-runs", "pvc-ends", "pvc-kept", "pvc-goes"} {
		must(t, create(id))
	}
	for _, id := range []string{"pvc-runs", "pvc-ends"} {
		must(t, os.WriteFile(filepath.Join(s.use(id, false), "file"), []byte("data"), 0o600))
	}
	must(t, errors.Join(retain("pvc-kept"), retain("pvc-goes")))
	unix.Sync()

	roottest.RefuseWrites(t, fsType, mounted)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("%s on a disk that takes no writes: %v", what, err)
		}
	}
	s.leave("pvc-ends", false)
	refused("retain", retain("pvc-ends"))
	refused("delete", s.node.DeleteVolume(t.Context(), s.pool, "pvc-goes"))
	refused("make", create("pvc-more"))
	if fsType == "ext4" { // an XFS that has shut down says nothing about its files
		wantFile(t, s.volume("pvc-runs", false).Target(), "data", "on a disk that takes no writes")
	}
	s.leave("pvc-runs", false)

	s.stop()
	roottest.MountAnew(t, mounted)
	s.start()
	for id, want := range map[string]string{"pvc-runs": "", "pvc-ends": "", "pvc-kept": comment, "pvc-goes": comment} {
		if v, err := s.node.Volume(t.Context(), s.pool, id); err != nil || v.Comment != want {
			t.Errorf("after that %s is %+v, %v, want the comment %q", id, v, err, want)
		}
	}
	if _, err := s.node.Volume(t.Context(), s.pool, "pvc-more"); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("after that what was not made: %v", err)
	}
	for _, id := range []string{"pvc-runs", "pvc-ends"} {
		wantFile(t, s.use(id, false), "data", id+" after that")
		s.leave(id, false)
	}
	must(t, errors.Join(retain("pvc-ends"), create("pvc-more")))
	for _, id := range []string{"pvc-runs", "pvc-ends", "pvc-kept", "pvc-goes", "pvc-more"} {
		must(t, s.node.DeleteVolume(t.Context(), s.pool, id))
	}
	wantNothingLocal(t, disk)
}
