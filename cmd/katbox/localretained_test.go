package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/local"
	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/roottest"
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
		s.leave(id)
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
