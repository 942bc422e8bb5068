package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
	"github.com/katbox/katbox/internal/testing/attachtest"
)

// arrayIO is a node on which a process writes to a volume of each kind.
type arrayIO struct {
	*arrayDaemon
	cluster *arrayCluster
	volumes []attached
	writers []*attachtest.Writer
}

// newArrayIO stages and publishes the volumes, and starts the writers. The daemon is the program itself, as
// it is installed.
func newArrayIO(t *testing.T) *arrayIO {
	t.Helper()
	cluster := newArrayCluster(t)
	io := &arrayIO{arrayDaemon: newArrayDaemon(t, cluster.api.URL()), cluster: cluster}
	if io.program = os.Getenv("KATBOX_PROGRAM"); io.program == "" {
		t.Fatal("KATBOX_PROGRAM is not set")
	}
	io.start()
	for _, kind := range []string{nfsVolume, diskVolume, blockVolume} {
		v := cluster.attach(t, kind, "io-"+kind)
		io.retried("stage "+kind, io.volume(v.at, v.block).Stage)
		io.retried("publish "+kind, io.volume(v.at, v.block).Publish)
		io.volumes = append(io.volumes, v)
		io.writers = append(io.writers, attachtest.StartWriter(t, io.file(v)))
	}
	return io
}

// file is what a pod writes to.
func (io *arrayIO) file(v attached) string {
	target := io.volume(v.at, v.block).Target()
	if v.block {
		return target
	}
	return filepath.Join(target, "data")
}

// retried makes a call until it succeeds, as the kubelet does.
func (io *arrayIO) retried(what string, call func(context.Context) error) {
	io.t.Helper()
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		err = call(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	log := io.stdout.String()
	io.t.Fatalf("%s: %v\n...%s", what, err, log[max(0, len(log)-4000):])
}

// goOn waits until each writer has written more.
func (io *arrayIO) goOn(when string) {
	io.t.Helper()
	began := time.Now()
	for _, w := range io.writers {
		w.More(io.t)
	}
	io.t.Logf("%s: all went on after %v", when, time.Since(began).Round(10*time.Millisecond))
}

// wantWaits makes a call about a volume of an array that is away. Its answer must come, and must not be final.
func (io *arrayIO) wantWaits(what string, call func(context.Context) error) {
	io.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	if err := call(ctx); status.Code(err) != codes.Unavailable || ctx.Err() != nil {
		io.t.Errorf("%s while the array is away, after %v: %v", what, time.Since(began).Round(time.Second), err)
	}
}

func (io *arrayIO) stats(ctx context.Context, v attached) error {
	target := io.volume(v.at, v.block).Target()
	_, err := io.arrayNode.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: v.at.Volume, VolumePath: target})
	return err
}

// end ends the writers, compares every byte on the node and once more when the volumes are staged anew, and
// takes all away.
func (io *arrayIO) end() {
	t := io.t
	t.Helper()
	for i, v := range io.volumes {
		io.writers[i].End(t)
		t.Logf("%s: %d blocks, the longest took %v", v.at.Volume, io.writers[i].Blocks(), io.writers[i].Longest().Round(10*time.Millisecond))
	}
	down := func(v attached) {
		io.retried("unpublish", io.volume(v.at, v.block).Unpublish)
		io.retried("unstage", io.volume(v.at, v.block).Unstage)
		io.cluster.Detach(t, v.on, io.cluster.node)
	}
	for i, v := range io.volumes {
		down(v)
		fsType := v.at.FSType
		v.at = io.cluster.Attach(t, v.on, io.cluster.node, false)
		v.at.FSType = fsType
		io.retried("stage anew", io.volume(v.at, v.block).Stage)
		io.retried("publish anew", io.volume(v.at, v.block).Publish)
		io.writers[i].Check(t, io.file(v))
		down(v)
	}
	io.wantNothingLeft("at the end")
	wantNoSessions(t, "at the end")
}

// TestArrayIOGoesOnWithoutTheDaemon: neither the end of the daemon nor its restarts are noticed by what writes,
// killed or not; a new one knows all that is staged, and grows it.
func TestArrayIOGoesOnWithoutTheDaemon(t *testing.T) {
	io := newArrayIO(t)
	io.goOn("at first")
	io.signal(syscall.SIGTERM)
	io.goOn("without a daemon")
	io.start()
	for range 5 {
		io.goOn("before a kill")
		io.crash()
	}
	io.goOn("with a new daemon")
	for _, v := range io.volumes {
		io.cluster.Grow(t, v.on, 2)
		io.retried("expand "+v.at.Volume, func(ctx context.Context) error {
			_, err := io.volume(v.at, v.block).Expand(ctx, 2<<30)
			return err
		})
	}
	io.goOn("after the expansion")
	io.end()
}

// TestArrayIOGoesOnAfterTheArrayWasAway: for a minute, and then for a restart of the array. Calls are answered
// meanwhile, and a daemon that starts then is ready.
func TestArrayIOGoesOnAfterTheArrayWasAway(t *testing.T) {
	io := newArrayIO(t)
	io.goOn("at first")
	another := io.cluster.attach(t, nfsVolume, "another")
	left := time.Now()
	io.cluster.Leave(t, dataplane.Network)
	io.wantWaits("the statistics of NFS", func(ctx context.Context) error { return io.stats(ctx, io.volumes[0]) })
	io.wantWaits("staging NFS", io.volume(another.at, false).Stage)
	// The statistics and the mount wait in the kernel. Neither keeps the daemon from its end, nor the next one
	// from the scratch volumes.
	if code := io.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("the end of the daemon while the array is away: exit code %d: %s", code, io.stderr)
	}
	io.start()
	io.publish(testPod, volumeID(1))
	io.unpublish(testPod, volumeID(1))
	t.Logf("a new daemon serves after %v", time.Since(left).Round(time.Second))
	io.wantWaits("the statistics of NFS, of a new daemon", func(ctx context.Context) error { return io.stats(ctx, io.volumes[0]) })
	time.Sleep(time.Until(left.Add(time.Minute)))
	t.Logf("away for %v", time.Since(left).Round(time.Second))
	io.cluster.Return(t)
	io.goOn("after a minute without the network")
	io.retried("stage", io.volume(another.at, false).Stage)
	io.retried("unstage", io.volume(another.at, false).Unstage)
	io.cluster.Leave(t, dataplane.Down)
	io.wantWaits("staging NFS", io.volume(another.at, false).Stage)
	io.cluster.Return(t)
	io.goOn("after the array was down")
	io.retried("unstage", io.volume(another.at, false).Unstage)
	for _, v := range io.volumes {
		io.retried("statistics", func(ctx context.Context) error { return io.stats(ctx, v) })
	}
	io.end()
}

// TestArrayIOGoesOnWhenTheArrayChanges: the token is another, and the portal moves. What is staged goes on at
// the old portal while that answers; new volumes come from the new one.
func TestArrayIOGoesOnWhenTheArrayChanges(t *testing.T) {
	io := newArrayIO(t)
	io.goOn("at first")
	token := io.cluster.Settings().Token
	must(t, io.cluster.Change(func(set *fakevpsa.Settings) { set.Token = "revoked" }))
	io.goOn("with another token")
	for _, v := range io.volumes {
		io.retried("statistics", func(ctx context.Context) error { return io.stats(ctx, v) })
	}
	must(t, io.cluster.Change(func(set *fakevpsa.Settings) { set.Token, set.BothPortals = token, true }))
	must(t, io.cluster.SwitchController())
	io.goOn("at the old portal")
	for _, kind := range []string{nfsVolume, diskVolume} {
		v := io.cluster.attach(t, kind, "new-"+kind)
		io.retried("stage "+kind, io.volume(v.at, v.block).Stage)
		io.retried("publish "+kind, io.volume(v.at, v.block).Publish)
		io.volumes = append(io.volumes, v)
		io.writers = append(io.writers, attachtest.StartWriter(t, io.file(v)))
	}
	io.goOn("new volumes beside them")
	io.end()
}
