package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestNoMoreDirectories: the working directory has as many directories as it can hold, and bytes and inodes are free.
// A publish is refused as on a full disk, the oldest retained volume goes, and then there is room.
func TestNoMoreDirectories(t *testing.T) {
	const volumes = 5
	mnt := roottest.FileSystem(t, "ext4", 384, "-O", "^dir_nlink", "-N", "90000")
	work := filepath.Join(mnt, "work")
	d := newDaemon(t, "--afterlifespan", "48h", "--workdir", work, "--headroom", "0.02")
	roottest.UnmountBelowAtEnd(t, mnt)
	d.start()
	d.retain(volumes, 4096)
	for i := 0; ; i++ {
		err := unix.Mkdir(filepath.Join(work, fmt.Sprint(".other-", i)), 0o700)
		if errors.Is(err, unix.EMLINK) {
			break
		}
		must(t, err)
	}
	pod, id := podName(volumes), volumeID(volumes)
	d.makePod(pod)
	_, err := d.node.NodePublishVolume(t.Context(), d.request(pod, id))
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("publish: %v, want ResourceExhausted", err)
	}
	d.eventually("the oldest volume gone", func() bool { return !exists(filepath.Join(work, podName(0), volumeID(0))) })
	d.eventually("room for another directory", func() bool {
		_, err := d.node.NodePublishVolume(t.Context(), d.request(pod, id))
		return err == nil
	})
	if !exists(filepath.Join(work, podName(volumes-1), volumeID(volumes-1))) {
		t.Error("all retained volumes are gone, where one was enough")
	}
	d.unpublish(pod, id)
}
