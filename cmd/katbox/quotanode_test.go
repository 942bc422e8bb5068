package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/soak/testbed"
)

// limitedNode is a node whose working directory is on a file system with project quotas.
type limitedNode struct {
	*daemon
	fileSystem string
	quotas     *quota.FileSystem
	// first is the first of the ten projects that its volumes may have.
	first uint32
}

// onQuotas runs a test on each file system in a state of project quotas, with a range of project IDs
// of its own. The daemon is not started yet.
func onQuotas(t *testing.T, state quota.State, test func(t *testing.T, n *limitedNode)) {
	for i, dir := range roottest.Quotas(t, state.String()) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			n := newLimitedNode(t, dir)
			if got, err := n.quotas.State(); got != state {
				t.Fatalf("file system %d is %s, %v, want %s", i, got, err, state)
			}
			test(t, n)
		})
	}
}

// newLimitedNode returns a node whose working directory is on a file system.
func newLimitedNode(t *testing.T, fileSystem string) *limitedNode {
	t.Helper()
	n := &limitedNode{daemon: newDaemon(t, "--afterlifespan", "1h"), fileSystem: fileSystem, first: freshProjects(t)}
	n.flags = append(n.flags, "--project-ids", fmt.Sprint(n.first, "+10"))
	bindWorkdir(t, n.daemon, fileSystem)
	top, err := os.Open(n.workdir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { top.Close() })
	n.quotas = quota.Detect(int(top.Fd()))
	return n
}

var projectsUsed uint32 = 2_000_000_000

// freshProjects returns the first of 100,000 project IDs that no other test uses.
func freshProjects(t *testing.T) uint32 {
	t.Helper()
	projectsUsed += 100_000
	return projectsUsed
}

// bindWorkdir puts the working directory of a daemon on a file system.
func bindWorkdir(t *testing.T, d *daemon, dir string) {
	t.Helper()
	work, err := os.MkdirTemp(dir, "work")
	if err == nil {
		err = os.Mkdir(d.workdir(), 0o750)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(d.workdir(), unix.UMOUNT_NOFOLLOW)
		if err := os.RemoveAll(work); err != nil {
			t.Error(err)
		}
	})
	roottest.Mount(t, work, d.workdir(), "", unix.MS_BIND, "")
}

// publishLimited publishes a volume with limits; "" and 0 are none.
func (n *limitedNode) publishLimited(pod, id, bytes string, inodes int) error {
	n.makePod(pod)
	req := n.request(pod, id)
	if bytes != "" {
		req.VolumeContext["sizeLimit"] = bytes
	}
	if inodes != 0 {
		req.VolumeContext["inodeLimit"] = strconv.Itoa(inodes)
	}
	_, err := n.node.NodePublishVolume(n.t.Context(), req)
	return err
}

func (n *limitedNode) mustPublish(pod, id, bytes string, inodes int) (target string) {
	n.t.Helper()
	if err := n.publishLimited(pod, id, bytes, inodes); err != nil {
		n.t.Fatalf("%v\n%s", err, n.stdout)
	}
	return n.target(pod)
}

// project returns the project that a file or directory has.
func (n *limitedNode) project(path string) uint32 {
	n.t.Helper()
	f, err := kernel.Open(path, unix.O_NONBLOCK)
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	attr, err := kernel.GetXAttr(int(f.Fd()))
	if err != nil {
		n.t.Fatal(err)
	}
	return attr.Project
}

func (n *limitedNode) quota(id uint32) quota.Quota {
	n.t.Helper()
	q, err := n.quotas.Read(id)
	if err != nil {
		n.t.Fatal(err)
	}
	return q
}

// wantFree waits until the kernel has neither use nor a limit of a project.
func (n *limitedNode) wantFree(id uint32) {
	n.t.Helper()
	n.eventually(fmt.Sprintf("project %d is free", id), func() bool {
		q := n.quota(id)
		return q.Used == volume.Size{} && q.Limit == volume.Size{}
	})
}

// wantGivenAgain waits until a new volume gets a project that is free. The daemon looks once a second
// at those that erased volumes had, once a minute if they were set aside. Volumes from that number on are
// published meanwhile.
func (n *limitedNode) wantGivenAgain(id uint32, from int) {
	n.t.Helper()
	n.eventually(fmt.Sprintf("a new volume gets project %d", id), func() bool {
		target := n.mustPublish(podNamed(from), volumeID(from), "1Mi", 0)
		if n.project(target) == id {
			return true
		}
		from++
		time.Sleep(time.Second)
		return false
	})
}

// write writes a file as a pod does, and returns how much there is then.
func (n *limitedNode) write(dir, name string, megabytes int) (size int64, err error) {
	n.t.Helper()
	_, err = roottest.AsPod(dir, "dd", "if=/dev/zero", "of="+name, "bs=64k", "count="+strconv.Itoa(megabytes*16), "conv=fsync")
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
		size = info.Size()
	}
	return size, err
}

// purge ends a volume's pod, deletes the volume and waits until it is erased.
func (n *limitedNode) purge(pod, id string) {
	n.t.Helper()
	n.unpublish(pod, id)
	n.purgeRetained(pod, id)
}

func (n *limitedNode) purgeRetained(pod, id string) {
	n.t.Helper()
	if err := n.admin().Purge(n.t.Context(), id, "a test"); err != nil {
		n.t.Fatal(err)
	}
	n.eventually("volume "+id+" is gone", func() bool { return !exists(n.data(pod, id)) && len(n.trash()) == 0 })
}

func (n *limitedNode) trash() []os.DirEntry {
	n.t.Helper()
	entries, err := testbed.ReadDirUnforked(filepath.Join(n.workdir(), ".trash"))
	if err != nil {
		n.t.Fatal(err)
	}
	return entries
}

func (n *limitedNode) stats(pod, id string) (bytes, inodes *csi.VolumeUsage) {
	n.t.Helper()
	got, err := n.node.NodeGetVolumeStats(n.t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: n.target(pod)})
	if err != nil {
		n.t.Fatalf("stats: %v, %v", got, err)
	}
	return got.Usage[0], got.Usage[1]
}

// podNamed returns the UID of a pod.
func podNamed(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i) }
