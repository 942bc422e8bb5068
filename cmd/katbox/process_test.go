package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestVolumeOutlivesItsPodForItsLifespan(t *testing.T) {
	const lifespan = 2 * time.Second
	d := newDaemon(t, "--afterlifespan", lifespan.String())
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.publish(testPod, id)
	if info, err := os.Stat(d.target(testPod)); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the volume as its pod sees it: %v, %v, want mode 0777", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(d.data(testPod, id))); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the pod's directory: %v, %v, want mode 0750", info.Mode(), err)
	}
	d.writeMarker(testPod)
	stats, err := d.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: d.target(testPod)})
	if err != nil || stats.Usage[1].Used != 2 {
		t.Errorf("stats %v, %v, want two inodes", stats, err)
	}
	began := time.Now()
	d.unpublish(testPod, id)
	d.unpublish(testPod, id)
	if exists(d.target(testPod)) || d.mounted(d.target(testPod)) {
		t.Error("the target is still there")
	}
	d.wantRetained(testPod, id, began, lifespan)
	d.eventually("deleted", d.gone(testPod, id))
	if lived := time.Since(began); lived < lifespan {
		t.Errorf("deleted after %v, before its lifespan of %v", lived, lifespan)
	}
	d.eventually("the pod's directory removed", func() bool { return !exists(d.data(testPod, "")) })
	if code := d.signal(syscall.SIGTERM); code != 0 || d.stderr.String() != "" {
		t.Errorf("after SIGTERM: exit code %d, stderr %q, want 0 and nothing", code, d.stderr)
	}
}

func TestReadOnlyPublishRefusesWrites(t *testing.T) {
	d := newDaemon(t)
	d.start()
	req := d.request(testPod, volumeID(1))
	req.Readonly = true
	for range 2 {
		if _, err := d.node.NodePublishVolume(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.target(testPod), "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
			t.Errorf("write: %v, want EROFS", err)
		}
	}
	req.Readonly = false
	if _, err := d.node.NodePublishVolume(t.Context(), req); status.Code(err) != codes.AlreadyExists {
		t.Errorf("publish as writable: %v, want AlreadyExists", err)
	}
	// On old kernels a crash may come between the bind and its flags. The kubelet's next
	// call completes the mount.
	if err := errors.Join(syscall.Unmount(d.target(testPod), 0),
		syscall.Mount(d.data(testPod, volumeID(1)), d.target(testPod), "", syscall.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	d.crash()
	req.Readonly = true
	if _, err := d.node.NodePublishVolume(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.target(testPod), "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write after the repeat: %v, want EROFS", err)
	}
}

func TestKilledDaemonKeepsMountsDataAndDeadlines(t *testing.T) {
	const lifespan = 3 * time.Second
	d := newDaemon(t, "--afterlifespan", lifespan.String())
	const otherPod = "other-pod"
	d.makePod(otherPod)
	d.start()
	d.publish(testPod, volumeID(1))
	d.writeMarker(testPod)
	d.publish(otherPod, volumeID(2))
	d.writeMarker(otherPod)
	retained := time.Now()
	d.unpublish(otherPod, volumeID(2))
	for range 3 {
		d.crash()
		if !d.mounted(d.target(testPod)) {
			t.Fatal("the mount of a running pod is gone")
		}
		d.wantMarker(testPod, volumeID(1), "published, after a crash")
		d.wantRetained(otherPod, volumeID(2), retained, lifespan)
	}
	d.eventually("deleted at its deadline", d.gone(otherPod, volumeID(2)))
	if lived := time.Since(retained); lived < lifespan {
		t.Errorf("deleted after %v, before its lifespan of %v", lived, lifespan)
	}
	retained = time.Now()
	d.unpublish(testPod, volumeID(1))
	d.wantRetained(testPod, volumeID(1), retained, lifespan)
}

func TestBusyTarget(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	holder := exec.Command("sleep", "600")
	holder.Dir = d.target(testPod)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	err := d.tryUnpublish(testPod, id)
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "still uses") {
		t.Errorf("unpublish of a busy target: %v, want Aborted and why", err)
	}
	d.wantMarker(testPod, id, "while its target is busy")
	d.crash()
	if !d.mounted(d.target(testPod)) {
		t.Error("unmounted under the process that uses it")
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed
	d.eventually("unmounted without another call", func() bool { return !d.mounted(d.target(testPod)) })
	d.wantMarker(testPod, id, "retained")
	d.unpublish(testPod, id)
}

func TestPublishedAgainWithinItsLifespan(t *testing.T) {
	const lifespan = time.Second
	d := newDaemon(t, "--afterlifespan", lifespan.String())
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	for {
		began := time.Now()
		d.unpublish(testPod, id)
		d.publishRepeated(testPod, id)
		if time.Since(began) < lifespan {
			break
		}
		d.writeMarker(testPod) // so slow a machine that it has expired in between
	}
	d.passDeadline()
	d.wantMarker(testPod, id, "published again, past its old deadline")
	if got, err := os.ReadFile(filepath.Join(d.target(testPod), "marker")); err != nil || string(got) != testPod {
		t.Errorf("the pod sees %q, %v, want its data", got, err)
	}
}

func TestPodThatVanishesWithoutAnUnpublish(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h", "--orphan-grace", "400ms")
	d.makePod("daemon") // its own, which always exists
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	// The kubelet's housekeeping leaves nothing of a pod that was deleted while its publish
	// was in flight, not even the mount.
	if err := syscall.Unmount(d.target(testPod), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(d.layout().Pods(), testPod)); err != nil {
		t.Fatal(err)
	}
	d.eventually("retained", func() bool { return d.logged(`"reason":"abandoned"`) })
	d.wantMarker(testPod, id, "retained")
}

// log returns what the daemon has written so far. It stops the daemon, so that nothing is on its way.
func (d *daemon) log() string {
	d.signal(syscall.SIGTERM)
	text := d.stdout.String()
	d.start()
	return text
}

func TestTargetRemovedUnderTheDriver(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	d.publish(testPod, volumeID(1))
	d.writeMarker(testPod)
	if err := errors.Join(syscall.Unmount(d.target(testPod), 0), os.Remove(d.target(testPod))); err != nil {
		t.Fatal(err)
	}
	d.publish(testPod, volumeID(1))
	if got, err := os.ReadFile(filepath.Join(d.target(testPod), "marker")); err != nil || string(got) != testPod {
		t.Errorf("mounted again, the pod sees %q, %v, want its data", got, err)
	}
	if err := errors.Join(syscall.Unmount(d.target(testPod), 0), os.Remove(d.target(testPod))); err != nil {
		t.Fatal(err)
	}
	d.unpublish(testPod, volumeID(1))
	d.wantMarker(testPod, volumeID(1), "retained")
}

func TestBadInputLeavesNoDirectory(t *testing.T) {
	d := newDaemon(t)
	d.start()
	for _, id := range []string{"..", ".", "../../x", ".trash", ""} {
		req := d.request(testPod, id)
		if _, err := d.node.NodePublishVolume(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("publish of %q: %v, want InvalidArgument", id, err)
		}
		if err := d.tryUnpublish(testPod, id); status.Code(err) != codes.InvalidArgument {
			t.Errorf("unpublish of %q: %v, want InvalidArgument", id, err)
		}
	}
	outside := d.request(testPod, volumeID(1))
	outside.TargetPath = filepath.Join(d.dir, "elsewhere")
	if _, err := d.node.NodePublishVolume(t.Context(), outside); status.Code(err) != codes.InvalidArgument {
		t.Errorf("publish outside of the kubelet's directory: %v, want InvalidArgument", err)
	}
	entries, err := os.ReadDir(d.workdir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("bad input left %s in the working directory", entry.Name())
		}
	}
	if exists(d.target(testPod)) || exists(outside.TargetPath) {
		t.Error("bad input left a target")
	}
}

func TestDamagedRecordsEndTheDaemon(t *testing.T) {
	for _, name := range []string{recordsFile, legacyFile} {
		d := newDaemon(t)
		if err := os.MkdirAll(d.data(testPod, volumeID(1)), 0o777); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(d.workdir(), name)
		if err := os.WriteFile(path, []byte("not a database at all"), 0o600); err != nil {
			t.Fatal(err)
		}
		line := d.fails()
		if !strings.Contains(line, path) || !strings.Contains(line, "move it aside") {
			t.Errorf("%s: %q does not say which file and what to do", name, line)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "not a database at all" || !exists(d.data(testPod, volumeID(1))) {
			t.Errorf("%s: the daemon changed something: %q, %v", name, got, err)
		}
	}
}

func TestSecondDaemonOnTheSameWorkdir(t *testing.T) {
	d := newDaemon(t)
	d.start()
	second := &daemon{t: t, dir: d.dir, flags: []string{"--endpoint", "unix://" + filepath.Join(d.dir, "other.sock")}}
	if line := second.fails(); !strings.Contains(line, "locked") || !strings.Contains(line, "stop") {
		t.Errorf("%q does not say what is locked and what to do", line)
	}
	d.publish(testPod, volumeID(1))
}

func TestSocketThatCannotBeMade(t *testing.T) {
	d := newDaemon(t)
	if err := os.WriteFile(d.layout().Socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if line := d.fails(); !strings.Contains(line, "csi.sock") || !strings.Contains(line, "not a socket") {
		t.Errorf("%q does not say what is wrong", line)
	}
}

// TestOrphansAreAdopted: a start after the records were moved aside finds the volumes.
func TestOrphansAreAdopted(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "2s")
	d.start()
	d.publish(testPod, volumeID(1))
	d.writeMarker(testPod)
	const ended = "d41d8cd98f00b204e9800998ecf8427e" // as a static pod's
	d.makePod(ended)
	d.publish(ended, volumeID(2))
	d.writeMarker(ended)
	d.unpublish(ended, volumeID(2))
	d.signal(syscall.SIGKILL)
	if err := os.Rename(filepath.Join(d.workdir(), recordsFile), filepath.Join(d.workdir(), ".aside.db")); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.eventually("the retained one deleted in its time", d.gone(ended, volumeID(2)))
	d.wantMarker(testPod, volumeID(1), "mounted, its record lost")
	d.unpublish(testPod, volumeID(1))
	d.eventually("deleted", d.gone(testPod, volumeID(1)))
}

func TestWorkingDirectoryIsAMountOfItsOwn(t *testing.T) {
	roottest.Need(t)
	d := newDaemon(t)
	d.start()
	if !d.mounted(d.workdir()) {
		t.Error("the working directory is not a mount")
	}
	d.crash()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(table), " "+d.workdir()+" "); n != 1 {
		t.Errorf("the working directory is mounted %d times after a restart, want once", n)
	}
	d.publish(testPod, volumeID(1))
	d.signal(syscall.SIGTERM)
	if d.mounted(d.workdir()) {
		t.Error("the working directory is still a mount after the end")
	}
	if !d.mounted(d.target(testPod)) {
		t.Error("the pod lost its volume with the end of the daemon")
	}
}

// TestRetainedVolumeThatAnotherMounted: a volume that a pod could still be using is not
// deleted, no matter which process mounted it.
func TestRetainedVolumeThatAnotherMounted(t *testing.T) {
	const lifespan = time.Second
	d := newDaemon(t, "--afterlifespan", lifespan.String())
	d.start()
	id := volumeID(1)
	for {
		d.publishRepeated(testPod, id)
		d.writeMarker(testPod)
		began := time.Now()
		d.unpublish(testPod, id)
		must(t, os.Mkdir(d.target(testPod), 0o750))
		err := syscall.Mount(d.data(testPod, id), d.target(testPod), "", syscall.MS_BIND, "")
		if time.Since(began) < lifespan {
			must(t, err)
			break
		}
		if err == nil { // so slow a machine that it has expired in between
			must(t, syscall.Unmount(d.target(testPod), 0))
		}
		must(t, os.Remove(d.target(testPod)))
	}
	d.passDeadline()
	d.wantMarker(testPod, id, "mounted by another process")
	if err := syscall.Unmount(d.target(testPod), 0); err != nil {
		t.Fatal(err)
	}
	d.eventually("deleted once it is unmounted", d.gone(testPod, id))
}

// TestMountOutOfSight: a volume that the mount table shows as mounted is kept, though its
// target path leads nowhere.
func TestMountOutOfSight(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1s", "--orphan-grace", "400ms")
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	pod, moved := filepath.Join(d.layout().Pods(), testPod), filepath.Join(d.dir, "moved")
	if err := os.Rename(pod, moved); err != nil {
		t.Fatal(err)
	}
	if err := d.tryUnpublish(testPod, id); status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), moved) {
		t.Errorf("unpublish: %v, want Aborted and where it is mounted", err)
	}
	d.passDeadline()
	d.wantMarker(testPod, id, "mounted elsewhere")
	if err := os.Rename(moved, pod); err != nil {
		t.Fatal(err)
	}
	d.eventually("unmounted", func() bool { return !d.mounted(d.target(testPod)) })
	d.eventually("deleted", d.gone(testPod, id))
}

// TestDataDirectoryRemovedUnderTheDriver: a publish gives the pod a directory
// that it can write to.
func TestDataDirectoryRemovedUnderTheDriver(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	id := volumeID(1)
	d.publish(testPod, id)
	if err := os.RemoveAll(d.data(testPod, "")); err != nil {
		t.Fatal(err)
	}
	stats, err := d.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: d.target(testPod)})
	if status.Code(err) != codes.NotFound {
		t.Errorf("stats %v, %v, want NotFound", stats, err)
	}
	d.publish(testPod, id)
	d.writeMarker(testPod)
	d.wantMarker(testPod, id, "made anew")
	if err := os.RemoveAll(d.data(testPod, "")); err != nil {
		t.Fatal(err)
	}
	d.crash()
	d.unpublish(testPod, id)
	if d.mounted(d.target(testPod)) {
		t.Error("still mounted")
	}
}
