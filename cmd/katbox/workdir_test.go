package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestCoveredWorkingDirectory: with another file system mounted over the working
// directory, or the directory moved away, the daemon deletes nothing that is still
// mounted, and ends with a line.
func TestCoveredWorkingDirectory(t *testing.T) {
	for name, tt := range map[string]struct {
		cover, uncover func(d *daemon) error
	}{
		"mounted over": {
			cover:   func(d *daemon) error { return syscall.Mount("other", d.workdir(), "tmpfs", 0, "") },
			uncover: func(d *daemon) error { return syscall.Unmount(d.workdir(), 0) },
		},
		"moved": {
			cover:   func(d *daemon) error { return os.Rename(d.dir+"/volumes", d.dir+"/aside") },
			uncover: func(d *daemon) error { return os.Rename(d.dir+"/aside", d.dir+"/volumes") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, "--afterlifespan", "1s")
			if err := errors.Join(os.MkdirAll(d.dir+"/volumes/work", 0o750), os.Symlink("volumes/work", d.workdir())); err != nil {
				t.Fatal(err)
			}
			d.start()
			id, elsewhere := volumeID(1), filepath.Join(d.dir, "elsewhere")
			d.publish(testPod, id)
			d.writeMarker(testPod)
			if err := os.Mkdir(elsewhere, 0o750); err != nil {
				t.Fatal(err)
			}
			roottest.Bind(t, d.data(testPod, id), elsewhere)
			d.unpublish(testPod, id)
			if err := tt.cover(d); err != nil {
				t.Fatal(err)
			}
			d.eventually("the daemon has ended", d.process.Over)
			if code := d.wait(); code != 1 || !strings.Contains(d.stderr.String(), d.workdir()) || strings.Count(d.stderr.String(), "\n") != 1 {
				t.Errorf("exit code %d, stderr %q, want 1 and one line that names the directory", code, d.stderr)
			}
			if _, err := os.Lstat(filepath.Join(elsewhere, "marker")); err != nil {
				t.Errorf("the data is gone though it is mounted: %v", err)
			}
			if err := tt.uncover(d); err != nil {
				t.Fatal(err)
			}
			d.start()
			d.passDeadline()
			d.wantMarker(testPod, id, "mounted elsewhere")
			if err := syscall.Unmount(elsewhere, 0); err != nil {
				t.Fatal(err)
			}
			d.eventually("deleted", d.gone(testPod, id))
		})
	}
}

// TestPublishUnderACoveredWorkingDirectory: a pod gets the data directory that the daemon
// opened, not one of the same name that covers it.
func TestPublishUnderACoveredWorkingDirectory(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h", "--orphan-grace", "1h", "--http-endpoint", httpEndpoint())
	d.start()
	// It has looked at the working directory by then, and looks again after a minute.
	d.eventually("the pods seen", func() bool { return d.metrics()["katbox_pods_directory_entries"] == 1 })
	id := volumeID(1)
	d.publish(testPod, id)
	d.writeMarker(testPod)
	d.unpublish(testPod, id)
	if err := errors.Join(syscall.Mount("copy", d.workdir(), "tmpfs", 0, ""), os.MkdirAll(d.data(testPod, id), 0o750)); err != nil {
		t.Fatal(err)
	}
	d.publish(testPod, id)
	if _, err := os.Lstat(filepath.Join(d.target(testPod), "marker")); err != nil {
		t.Errorf("another directory is mounted: %v", err)
	}
	d.unpublish(testPod, id)
	if d.mounted(d.target(testPod)) {
		t.Error("still mounted")
	}
}

// paths returns all paths below a directory; it does not follow links.
func paths(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWorkdirThatIsNotKatboxs: the start ends with a line that says what to do, and
// leaves everything as it was.
func TestWorkdirThatIsNotKatboxs(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(d *daemon)
		want    string
	}{
		"other people's data": {func(d *daemon) { d.mkdir("work/photos/2024") },
			"work/photos/2024; give Katbox a directory of its own"},
		"symbolic link to the pods directory": {func(d *daemon) { d.link("work", "kubelet/pods") }, "contain one another"},
		"symbolic link to /":                  {func(d *daemon) { d.link("work", "/") }, "contain one another"},
		"the kubelet's directory, mounted": {func(d *daemon) {
			d.mkdir("work")
			roottest.Bind(d.t, d.layout().Kubelet, d.workdir())
		}, "contain one another"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			tt.prepare(d)
			before := paths(t, d.dir)
			line := d.fails()
			if !strings.Contains(line, "--workdir "+d.workdir()) || !strings.Contains(line, tt.want) {
				t.Errorf("%q does not say %q", line, tt.want)
			}
			if after := paths(t, d.dir); !slices.Equal(before, after) {
				t.Errorf("there was %q, there is %q", before, after)
			}
			if name != "the kubelet's directory, mounted" && d.mounted(d.workdir()) {
				t.Error("it is a mount point now")
			}
		})
	}
}

func (d *daemon) mkdir(path string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Join(d.dir, path), 0o750); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) link(name, to string) {
	d.t.Helper()
	if err := os.Symlink(to, filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

// TestForeignDataIsLeftAlone: directories that get into the working directory later are not
// taken for volumes.
func TestForeignDataIsLeftAlone(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1s")
	d.start()
	d.signal(syscall.SIGKILL)
	foreign := []string{"work/photos/2024", "work/" + testPod + "/volume", "work/src/" + volumeID(1)}
	for _, dir := range foreign {
		d.mkdir(dir)
	}
	d.mkdir("work/" + testPod + "/" + volumeID(1))
	d.start()
	d.eventually("what is a volume's is adopted and deleted", d.gone(testPod, volumeID(1)))
	d.passDeadline()
	for _, dir := range foreign {
		if !exists(filepath.Join(d.dir, dir)) {
			t.Errorf("%s is gone", dir)
		}
	}
	d.signal(syscall.SIGTERM)
	if told := strings.Count(d.stdout.String(), "not Katbox's"); told != 1 {
		t.Errorf("told of it %d times, want once:\n%s", told, d.stdout)
	}
}

// TestPropagationIsTold: the daemon logs that pods cannot see its mounts.
func TestPropagationIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		propagation uintptr
		want        bool
	}{"private": {syscall.MS_PRIVATE, true}, "shared": {syscall.MS_SHARED, false}} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			pods := d.layout().Pods()
			roottest.Bind(t, pods, pods)
			if err := syscall.Mount("", pods, "", tt.propagation, ""); err != nil {
				t.Fatal(err)
			}
			d.start()
			d.signal(syscall.SIGTERM)
			if told := strings.Contains(d.stdout.String(), "mountPropagation: Bidirectional"); told != tt.want {
				t.Errorf("told: %t, want %t\n%s", told, tt.want, d.stdout)
			}
		})
	}
}

// TestReadyOnlyWithPods: without pods the daemon has another directory than the kubelet's,
// or does not see it.
func TestReadyOnlyWithPods(t *testing.T) {
	d := newDaemon(t, "--http-endpoint", httpEndpoint(), "--orphan-grace", "400ms", "--afterlifespan", "1s")
	d.start()
	d.publish(testPod, volumeID(1))
	d.writeMarker(testPod)
	d.wantAnswer("/readyz", http.StatusOK, "ok")
	pod := filepath.Join(d.layout().Pods(), testPod)
	// In another mount namespace the mount would not be seen either.
	if err := errors.Join(syscall.Unmount(d.target(testPod), 0), os.Rename(pod, filepath.Join(d.dir, "aside"))); err != nil {
		t.Fatal(err)
	}
	d.eventually("not ready", func() bool { code, _ := d.get("/readyz"); return code == http.StatusServiceUnavailable })
	d.wantAnswer("/readyz", http.StatusServiceUnavailable, filepath.Dir(pod))
	if err := os.Rename(filepath.Join(d.dir, "aside"), pod); err != nil {
		t.Fatal(err)
	}
	d.eventually("ready", func() bool { code, _ := d.get("/readyz"); return code == http.StatusOK })
	d.wantMarker(testPod, volumeID(1), "nothing was concluded")
}
