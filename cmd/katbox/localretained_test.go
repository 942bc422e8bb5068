package main

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestRetainedVolumesOfPoolsInADaemon: what the pools of a node keep of deleted claims is listed and read beside the
// inline volumes.
func TestRetainedVolumesOfPoolsInADaemon(t *testing.T) {
	since := time.Now().UTC().Truncate(time.Second)
	comment := pools.Comment{
		Claim: "shop/data", ClaimUID: "claim-1", NamespaceUID: "ns-1",
		Retained: &pools.Retention{Since: since, Until: since.Add(time.Hour)},
	}.String()
	var flags []string
	for _, tt := range []struct{ fsType, backend string }{{"btrfs", "btrfs"}, {"ext4", "image"}} {
		disk := filepath.Join(roottest.FileSystem(t, tt.fsType, 512), "pool")
		pool := "--local-pool=" + tt.backend + "=" + disk + ",backend=" + tt.backend
		flags = append(flags, pool)
		s := newLocalScene(t, pool)
		id := "pvc-" + tt.backend
		s.create(local.NewVolume{Name: id, Size: 64 * mebi})
		must(t, os.WriteFile(filepath.Join(s.use(id, false), "file"), []byte("data"), 0o600))
		s.leave(id, false)
		_, err := s.node.CommentVolume(t.Context(), s.pool, id, comment)
		must(t, err)
		s.stop()
	}
	d := newDaemon(t)
	d.flags = append(flags, "--local-endpoint=unix://"+filepath.Join(d.dir, "local.sock"))
	d.start()
	d.publishLarge("csi-inline", 16)
	d.unpublish(testPod, "csi-inline")
	ctx, admin := t.Context(), d.admin()
	var list api.VolumeList
	d.eventually("the pools are looked for behind all else", func() bool {
		var err error
		list, err = admin.List(ctx, api.Query{})
		must(t, err)
		return len(list.Items) >= 3
	})
	if v := list.Items[0]; v.ID != "csi-inline" || v.Claim != "" {
		t.Errorf("the inline volume was retained last, and the first is %+v", v)
	}
	for _, v := range list.Items[1:] {
		if v.Namespace != "shop" || v.Claim != "data" || v.Owner == nil || v.Owner.NamespaceUID != "ns-1" || *v.Bytes != 64*mebi ||
			!v.RetainedAt.Equal(since) || !v.ExpiresAt.Equal(since.Add(time.Hour)) {
			t.Errorf("listed %+v", v)
		}
	}
	for _, id := range []string{"pvc-btrfs", "pvc-image"} {
		stream, err := admin.Bytes(ctx, id, api.BytesQuery{Path: "file"})
		must(t, err)
		if text, err := io.ReadAll(stream); err != nil || string(text) != "data" {
			t.Errorf("read %q of %s, %v", text, id, err)
		}
		must(t, stream.Close())
	}
	if err := admin.Purge(ctx, "pvc-btrfs", ""); err == nil || !strings.Contains(err.Error(), "kubectl delete poolvolume pvc-btrfs") {
		t.Errorf("purge: %v", err)
	}
}

// TestImageIsReadInADaemon: a daemon that is killed while a person reads an image leaves nothing. Reading changes no
// byte of the image, and what gets the volume back ends it.
func TestImageIsReadInADaemon(t *testing.T) {
	const id, large = "pvc-1", 32 * mebi
	disk := filepath.Join(roottest.FileSystem(t, "ext4", 512), "pool")
	pool := "--local-pool=fast=" + disk + ",backend=image"
	s := newLocalScene(t, pool)
	s.create(local.NewVolume{Name: id, Size: 64 * mebi})
	must(t, os.WriteFile(filepath.Join(s.use(id, false), "large"), make([]byte, large), 0o600))
	s.leave(id, false)
	_, err := s.node.CommentVolume(t.Context(), s.pool, id, pools.Comment{Retained: &pools.Retention{Since: time.Now()}}.String())
	must(t, err)
	s.stop()
	image := filepath.Join(disk, "volumes", id, "image")
	sum := func() [sha256.Size]byte {
		content, err := os.ReadFile(image)
		must(t, err)
		return sha256.Sum256(content)
	}
	before := sum()

	d := newDaemon(t)
	d.flags = append(d.flags, pool, "--local-endpoint=unix://"+filepath.Join(d.dir, "local.sock"))
	d.start()
	stall := func() (stream *api.Stream) {
		d.eventually("the pools are looked for behind all else", func() bool {
			var err error
			stream, err = d.tryStall(id, api.BytesQuery{Path: "large"})
			return err == nil
		})
		return stream
	}
	stream := stall()
	devices := loopsOfImage(t, image)
	if len(devices) != 1 {
		t.Fatalf("the devices of the image are %q", devices)
	}
	wantUnseen(t, devices[0])
	d.signal(syscall.SIGKILL)
	wantCut(t, stream)
	d.eventually("the device goes with the daemon", func() bool { return len(loopsOfImage(t, image)) == 0 })
	if sum() != before {
		t.Error("reading has changed the image")
	}

	d.start()
	stream = stall()
	if len(loopsOfImage(t, image)) != 1 {
		t.Error("the image is read without its device")
	}
	d.signal(syscall.SIGTERM) // another daemon restores it below
	wantCut(t, stream)
	d.eventually("the device goes with the daemon", func() bool { return len(loopsOfImage(t, image)) == 0 })
	if sum() != before {
		t.Error("reading has changed the image")
	}

	s.start()
	reading, err := s.node.Read(t.Context(), id)
	must(t, err)
	_, err = s.node.CommentVolume(t.Context(), s.pool, id, "restored")
	must(t, err)
	<-reading.Lost.Done()
	reading.Close()
	target := s.use(id, false)
	must(t, os.WriteFile(filepath.Join(target, "more"), []byte("data"), 0o600))
	s.leave(id, false)
}

// loopsOfImage returns the loop devices of a file.
func loopsOfImage(t *testing.T, image string) (names []string) {
	t.Helper()
	all, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	must(t, err)
	for _, path := range all {
		if content, err := os.ReadFile(path); err == nil && strings.HasSuffix(strings.TrimSpace(string(content)), image) {
			names = append(names, filepath.Base(filepath.Dir(filepath.Dir(path))))
		}
	}
	return names
}

// wantUnseen checks that the mount table of no process has a mount of a device.
func wantUnseen(t *testing.T, device string) {
	t.Helper()
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	must(t, err)
	for _, table := range tables {
		if text, err := os.ReadFile(table); err == nil && strings.Contains(string(text), "/dev/"+device+" ") {
			t.Errorf("%s has a mount of %s", table, device)
		}
	}
}
