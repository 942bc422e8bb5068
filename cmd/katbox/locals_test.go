package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	actorslocal "github.com/katbox/katbox/actors/local"
	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/soak/testbed"
)

// localScene is the part of a daemon that serves volumes on the node's disks, in the process of the test: only the
// controller makes volumes.
type localScene struct {
	testing.TB
	dir   string
	flags []string
	i     *instance
	node  *actorslocal.Node
	csi   csi.NodeClient
	pool  string
}

func newLocalScene(t testing.TB, flags ...string) *localScene {
	t.Helper()
	roottest.Need(t)
	s := &localScene{TB: t, dir: t.TempDir()}
	roottest.UnmountBelowAtEnd(t, s.dir)
	s.flags = append(testbed.At(s.dir).Flags("--local-endpoint", "unix://"+s.socket()), flags...)
	s.csi = nodeClient(t, s.socket(), testbed.Waiting())
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *localScene) socket() string { return filepath.Join(s.dir, "local.sock") }

func (s *localScene) start() {
	s.Helper()
	o, err := parse(s.flags, os.Stdout)
	must(s, err)
	s.i = &instance{o: o, counted: metrics.New("", ""), log: logr.Discard(), failed: make(chan error, 1)}
	must(s, s.i.serveLocal(s.Context()))
	// It answers once the disks were looked at.
	info, err := s.csi.NodeGetInfo(s.Context(), &csi.NodeGetInfoRequest{})
	must(s, err)
	s.node = s.i.locals.Load().pools
	for key, value := range info.GetAccessibleTopology().GetSegments() {
		uuid, ok := pools.PoolOfKey(key)
		if !ok || value != pools.TopologyValue || s.pool != "" && s.pool != uuid {
			s.Fatalf("the topology has %s=%s, of pool %s", key, value, s.pool)
		}
		s.pool = uuid
	}
}

func (s *localScene) stop() {
	for _, stop := range s.i.stops {
		if err := stop(context.Background()); err != nil {
			s.Error(err)
		}
	}
	s.i.stops = nil
}

func (s *localScene) restart() {
	s.Helper()
	s.stop()
	s.start()
}

func (s *localScene) create(v local.NewVolume) local.Volume {
	s.Helper()
	made, err := s.node.CreateVolume(s.Context(), s.pool, v)
	must(s, err)
	return made
}

// volume is the kubelet's side of a volume.
func (s *localScene) volume(id string, block bool) testbed.Staged {
	return localVolume(s.csi, s.dir, s.pool, id, block)
}

func localVolume(node csi.NodeClient, dir, pool, id string, block bool) testbed.Staged {
	return testbed.Staged{Node: node, Kubelet: testbed.At(dir).Kubelet, Driver: "local.csi.katbox.io", Pod: testPod, ID: id, Block: block,
		Context: map[string]string{pools.PoolContext: pool}}
}

// use stages and publishes a volume, and returns where a pod has it.
func (s *localScene) use(id string, block bool) string {
	s.Helper()
	v := s.volume(id, block)
	must(s, v.Stage(s.Context()))
	must(s, v.Publish(s.Context()))
	return v.Target()
}

// leave takes a volume away from the pod and from the node.
func (s *localScene) leave(id string, block bool) {
	s.Helper()
	v := s.volume(id, block)
	must(s, v.Unpublish(s.Context()))
	must(s, v.Unstage(s.Context()))
}

const mebi = 1 << 20

// TestLocalVolumesOnRealDisks: data survives the daemon, growth, snapshots, clones and retention, and nothing is left.
func TestLocalVolumesOnRealDisks(t *testing.T) {
	for _, tt := range []struct{ fsType, backend string }{{"xfs", "image"}, {"btrfs", "btrfs"}} {
		t.Run(tt.fsType, func(t *testing.T) {
			disk := filepath.Join(roottest.FileSystem(t, tt.fsType, 2048), "pool")
			s := newLocalScene(t, "--local-pool", "fast="+disk+",backend="+tt.backend)
			v := s.create(local.NewVolume{Name: "pvc-1", Size: 320 * mebi, FSType: "xfs", Comment: "mine"})
			if !v.Ready || v.Size != 320*mebi || v.Pool != s.pool {
				t.Errorf("made %+v", v)
			}
			target := s.use("pvc-1", false)
			must(t, os.WriteFile(filepath.Join(target, "file"), []byte("data"), 0o600))
			if err := s.node.DeleteVolume(t.Context(), s.pool, "pvc-1"); !errors.Is(err, pools.ErrInUse) {
				t.Errorf("delete what is in use: %v", err)
			}
			s.restart()
			wantFile(t, target, "data", "after a restart")
			if v, err := s.node.Volume(t.Context(), s.pool, "pvc-1"); err != nil || !v.InUse || v.Comment != "mine" {
				t.Errorf("after a restart: %+v, %v", v, err)
			}
			_, err := s.node.GrowVolume(t.Context(), s.pool, "pvc-1", 384*mebi)
			must(t, err)
			expanded, err := s.volume("pvc-1", false).Expand(t.Context(), 384*mebi)
			if err != nil || expanded != 384*mebi {
				t.Errorf("expanded %v, %v", expanded, err)
			}
			stats, err := s.csi.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-1", VolumePath: target})
			if err != nil || stats.GetUsage()[0].GetTotal() < 256*mebi || stats.GetUsage()[0].GetTotal() > 384*mebi {
				t.Errorf("stats %v, %v", stats, err)
			}
			if _, err := s.node.CreateSnapshot(t.Context(), s.pool, "snap-1", "pvc-1"); err != nil {
				t.Fatal(err)
			}
			must(t, os.WriteFile(filepath.Join(target, "file"), []byte("later"), 0o600))
			s.create(local.NewVolume{Name: "pvc-2", Size: 384 * mebi, Source: local.Source{Snapshot: "snap-1"}})
			wantFile(t, s.use("pvc-2", false), "data", "from a snapshot")
			s.create(local.NewVolume{Name: "pvc-3", Size: 384 * mebi, Source: local.Source{Volume: "pvc-1"}})
			wantFile(t, s.use("pvc-3", false), "later", "from a volume")
			s.leave("pvc-1", false)
			retained := pools.Comment{Retained: &pools.Retention{Since: time.Now()}}.String()
			_, err = s.node.CommentVolume(t.Context(), s.pool, "pvc-1", retained)
			must(t, err)
			s.restart()
			if err := s.volume("pvc-1", false).Stage(t.Context()); status.Code(err) != codes.Unavailable {
				t.Errorf("stage what is retained: %v", err)
			}
			_, err = s.node.CommentVolume(t.Context(), s.pool, "pvc-1", "restored")
			must(t, err)
			wantFile(t, s.use("pvc-1", false), "later", "restored")
			must(t, s.node.DeleteSnapshot(t.Context(), s.pool, "snap-1"))
			for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
				s.leave(id, false)
				must(t, s.node.DeleteVolume(t.Context(), s.pool, id))
			}
			wantNothingLocal(t, disk)
		})
	}
}

// TestLocalBlockVolume: a pod gets a device, also after a restart of the daemon.
func TestLocalBlockVolume(t *testing.T) {
	disk := filepath.Join(roottest.FileSystem(t, "xfs", 512), "pool")
	s := newLocalScene(t, "--local-pool", "fast="+disk+",backend=image")
	s.create(local.NewVolume{Name: "pvc-1", Size: 64 * mebi, Block: true})
	if err := s.volume("pvc-1", false).Stage(t.Context()); status.Code(err) != codes.InvalidArgument {
		t.Errorf("stage a block volume as a file system: %v", err)
	}
	target := s.use("pvc-1", true)
	must(t, os.WriteFile(target, []byte("data"), 0))
	s.restart()
	content := make([]byte, 4)
	device, err := os.Open(target)
	must(t, err)
	_, err = device.Read(content)
	if must(t, errors.Join(err, device.Close())); string(content) != "data" {
		t.Errorf("the device has %q", content)
	}
	_, err = s.node.GrowVolume(t.Context(), s.pool, "pvc-1", 96*mebi)
	must(t, err)
	stats, err := s.csi.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "pvc-1", VolumePath: target})
	if err != nil || stats.GetUsage()[0].GetTotal() != 96*mebi {
		t.Errorf("stats %v, %v", stats, err)
	}
	s.leave("pvc-1", true)
	must(t, s.node.DeleteVolume(t.Context(), s.pool, "pvc-1"))
	wantNothingLocal(t, disk)
}

// TestLocalGrowthThatTheKernelRefuses: the volume has its former size for all who ask, until a later stage has made its
// file system larger. An ext4 grows before it is mounted, which does not take the kernel.
func TestLocalGrowthThatTheKernelRefuses(t *testing.T) {
	disk := filepath.Join(roottest.FileSystem(t, "xfs", 1024), "pool")
	s := newLocalScene(t, "--local-pool", "fast="+disk+",backend=image")
	for fsType, size := range map[string]int64{"ext4": 64 * mebi, "xfs": 320 * mebi} {
		id := "pvc-" + fsType
		s.create(local.NewVolume{Name: id, Size: size, FSType: fsType})
		target := s.use(id, false)
		refuses := true
		kernel.Inject(t, func(call, _ string) error {
			if refuses && (call == "GrowXFS" || call == "GrowExt4") {
				return unix.EPERM
			}
			return nil
		})
		total := func() int64 {
			t.Helper()
			stats, err := s.csi.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
			must(t, err)
			return stats.GetUsage()[0].GetTotal()
		}
		before, wanted := total(), size+64*mebi
		for i := range 3 {
			_, err := s.node.GrowVolume(t.Context(), s.pool, id, wanted)
			v, failed := s.node.Volume(t.Context(), s.pool, id)
			if !errors.Is(err, volume.ErrUncertain) || failed != nil || v.Size != size || total() != before {
				t.Errorf("%s: grow: %v; it is %+v, %v, with %d bytes; it had %d", fsType, err, v, failed, total(), before)
			}
			if i == 1 {
				s.restart()
			}
		}
		s.leave(id, false)
		s.use(id, false)
		v, err := s.node.Volume(t.Context(), s.pool, id)
		if fsType == "xfs" {
			if err != nil || v.Size != size || total() != before {
				t.Errorf("%s: used with the size that it has: %+v, %v, with %d bytes", fsType, v, err, total())
			}
			refuses = false
			s.leave(id, false)
			s.use(id, false)
			v, err = s.node.Volume(t.Context(), s.pool, id)
		}
		// An ext4 has grown before it was mounted: the kernel is not asked for that.
		if err != nil || v.Size != wanted || total() < before+32*mebi {
			t.Errorf("%s: staged anew: %+v, %v, with %d bytes; it had %d", fsType, v, err, total(), before)
		}
		s.leave(id, false)
		must(t, s.node.DeleteVolume(t.Context(), s.pool, id))
	}
	wantNothingLocal(t, disk)
}

// TestLocalPoolWithoutRoom refuses a volume, and leaves nothing of it.
func TestLocalPoolWithoutRoom(t *testing.T) {
	disk := filepath.Join(roottest.FileSystem(t, "xfs", 512), "pool")
	s := newLocalScene(t, "--local-pool", "fast="+disk+",backend=image")
	s.create(local.NewVolume{Name: "pvc-1", Size: 64 * mebi})
	for size, says := range map[int64]string{1024 * mebi: "has promised", 384 * mebi: "no space left in the pool's directory " + disk} {
		_, err := s.node.CreateVolume(t.Context(), s.pool, local.NewVolume{Name: "pvc-2", Size: size})
		if !errors.Is(err, volume.ErrNoSpace) || !strings.Contains(err.Error(), says) {
			t.Errorf("%d bytes: %v, want %q", size, err, says)
		}
	}
	must(t, s.node.DeleteVolume(t.Context(), s.pool, "pvc-1"))
	wantNothingLocal(t, disk)
}

func wantFile(t *testing.T, dir, want, when string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v, want %q", when, got, err, want)
	}
}

// wantNothingLocal checks that a pool has nothing but itself, once the trash is empty.
func wantNothingLocal(t *testing.T, pool string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left = nil
		for _, dir := range []string{"volumes", "snapshots", "records", ".trash"} {
			entries, err := os.ReadDir(filepath.Join(pool, dir))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if !strings.HasPrefix(entry.Name(), ".") {
					left = append(left, filepath.Join(dir, entry.Name()))
				}
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left in the pool: %q", left)
}

// TestLocalPoolComesAndGoes: a disk that is not mounted gets no pool, holds up nothing, and its return makes the kubelet
// ask anew.
func TestLocalPoolComesAndGoes(t *testing.T) {
	disk := filepath.Join(roottest.FileSystem(t, "xfs", 512), "pool")
	must(t, os.Mkdir(disk, 0o750))
	d := newRegisteringDaemon(t)
	at := filepath.Join(d.dir, "disk")
	must(t, os.Mkdir(at, 0o750))
	mount := func() { must(t, unix.Mount(disk, at, "", unix.MS_BIND, "")) }
	registration := filepath.Join(d.dir, "reg", "local.csi.katbox.io-reg.sock")
	endpoint := filepath.Join(d.dir, "local", "csi.sock")
	d.flags = append(d.flags, "--local-pool", "fast="+at+",backend=image", "--local-endpoint", "unix://"+endpoint, "--local-max-volumes", "9")
	segments := func() map[string]string {
		info, err := nodeClient(t, endpoint, testbed.Waiting()).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
		must(t, err)
		if info.GetMaxVolumesPerNode() != 9 {
			t.Errorf("the node is %v", info)
		}
		return info.GetAccessibleTopology().GetSegments()
	}
	mount()
	d.start()
	d.eventually("registering", func() bool { return exists(registration) })
	d.registerAt(registration, "")
	before := segments()
	if len(before) != 1 {
		t.Fatalf("the topology is %v", before)
	}
	labels := `{class="fast",path="` + at + `"}`
	d.metrics().Want(t, "with the disk", metricstest.Values{"katbox_local_registered": 1, "katbox_local_pool_up" + labels: 1})

	must(t, unix.Unmount(at, unix.MNT_DETACH)) // it is in use
	d.eventually("missing the disk", func() bool { return d.metrics()["katbox_local_pool_up"+labels] == 0 })
	if len(segments()) != 0 {
		t.Error("the topology has a pool whose disk is away")
	}
	d.publish(testPod, volumeID(1))
	d.wantAnswer("/healthz", http.StatusOK, "")
	d.crash() // and a start without the disk
	d.eventually("registering without the disk", func() bool { return exists(registration) })
	d.registerAt(registration, "")
	if entries, err := os.ReadDir(at); err != nil || len(entries) > 0 || len(segments()) != 0 {
		t.Errorf("in the directory without its disk there is %v, %v; the topology is %v", entries, err, segments())
	}
	first, err := os.Stat(registration)
	must(t, err)
	mount()
	d.eventually("using the disk again", func() bool { return d.metrics()["katbox_local_pool_up"+labels] == 1 })
	d.eventually("making the registration socket anew", func() bool {
		now, err := os.Stat(registration)
		return err == nil && (!os.SameFile(first, now) || !first.ModTime().Equal(now.ModTime()))
	})
	d.registerAt(registration, "")
	if after := segments(); len(after) != 1 || after[firstKey(before)] != pools.TopologyValue {
		t.Errorf("the topology is %v, and was %v", after, before)
	}
	d.unpublish(testPod, volumeID(1))
	if code := d.signal(syscall.SIGTERM); code != 0 || exists(registration) || exists(endpoint) || d.stderr.String() != "" {
		t.Errorf("after SIGTERM: exit code %d, stderr %q, and sockets may be left", code, d.stderr)
	}
}

// TestLocalPoolNeedsADiskOfItsOwn, unless its directory may be on the root disk; the report says so.
func TestLocalPoolNeedsADiskOfItsOwn(t *testing.T) {
	own := roottest.FileSystem(t, "xfs", 512)
	s := newLocalScene(t, "--local-pool", "fast="+filepath.Join(own, "pool")+",backend=image", "--host-root", own)
	var report strings.Builder
	must(t, s.i.reportLocal(t.Context(), &report))
	if !strings.Contains(report.String(), "is on the file system of /, so its disk is not mounted") || s.pool != "" {
		t.Errorf("the pool is %q, the report is %s", s.pool, report.String())
	}
	s.flags[slices.Index(s.flags, "--local-pool")+1] += ",on-root-disk"
	s.restart()
	if s.pool == "" {
		t.Error("with the option there is no pool")
	}
}

func firstKey(m map[string]string) string {
	for key := range m {
		return key
	}
	return ""
}
