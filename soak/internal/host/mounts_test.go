package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const mountTable = `21 1 8:1 / / rw,relatime - ext4 /dev/root rw
22 21 0:5 / /proc rw,nosuid shared:2 - proc proc rw
40 21 8:1 /run/soak/work/a/csi-1 /run/soak/kubelet/pods/a/mount rw,relatime - ext4 /dev/root rw
41 40 8:1 /run/soak/work/a/csi-1 /run/soak/kubelet/pods/a/mount ro,relatime - ext4 /dev/root rw
42 21 8:1 /x /run/soak/kubelet/pods/with\040blank\134n rw - ext4 /dev/root ro,errors=continue
43 21 8:1 /run/soak/kubelet/pods /elsewhere rw - ext4 /dev/root rw
44 21 8:1 /x /run/soak/kubelet-of-others rw - ext4 /dev/root rw
45 21 8:1 /x /run/soak/kubelet rw - ext4 /dev/root rw
46 21 8:1 /x /run/soak/kubelet/gone//deleted rw,rotten - ext4 /dev/root rw
`

func TestParseMounts(t *testing.T) {
	all, err := parseMounts([]byte(mountTable))
	if err != nil || len(all) != 9 {
		t.Fatalf("%d mounts, %v; want 9", len(all), err)
	}
	const stacked, source = "/run/soak/kubelet/pods/a/mount", "/run/soak/work/a/csi-1"
	want := []Mount{
		{ID: 40, Point: stacked, Root: source, Source: "/dev/root", FSType: "ext4"},
		{ID: 41, Point: stacked, Root: source, Source: "/dev/root", FSType: "ext4", ReadOnly: true},
		{ID: 42, Point: `/run/soak/kubelet/pods/with blank\n`, Root: "/x", Source: "/dev/root", FSType: "ext4", ReadOnly: true},
		{ID: 46, Point: "/run/soak/kubelet/gone//deleted", Root: "/x", Source: "/dev/root", FSType: "ext4"},
	}
	for _, dir := range []string{"/run/soak/kubelet", "/run/soak/kubelet/"} {
		if got := below(all, dir); !slices.Equal(got, want) {
			t.Errorf("below %s: %+v, want %+v", dir, got, want)
		}
	}
	if got := below(all, "/run/other"); len(got) > 0 {
		t.Errorf("below /run/other: %+v, want none", got)
	}
	if got := below(all, "/"); len(got) != len(all)-1 {
		t.Errorf("below /: %+v, want all but / itself", got)
	}
	if got, err := parseMounts([]byte(mountTable + "garbage\n")); err == nil {
		t.Errorf("with garbage: %+v, want an error", got)
	}
}

func TestMounts(t *testing.T) {
	mounts, err := MountsBelow("/")
	if err != nil {
		t.Fatal(err)
	}
	// Whatever else there is, /proc is mounted: it is being read.
	isProc := func(m Mount) bool { return m.Point == "/proc" && m.FSType == "proc" && m.ID > 0 }
	if !slices.ContainsFunc(mounts, isProc) {
		t.Errorf("/proc is not among %+v", mounts)
	}
	if mounts, err := MountsBelow(t.TempDir()); err != nil || len(mounts) > 0 {
		t.Errorf("below a new directory: %+v, %v; want none", mounts, err)
	}
}

func TestMountedAt(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/proc", link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/": true, "/proc": true, "/proc/": true, "/proc/self": false, dir: false,
		link: false, link + "/": false, filepath.Join(dir, "missing"): false,
	} {
		if got, err := MountedAt(path); err != nil || got != want {
			t.Errorf("%s: %t, %v; want %t", path, got, err, want)
		}
	}
	if got, err := MountedAt("/proc/self/stat/x"); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %t, %v; want ENOTDIR", got, err)
	}
}

func TestBind(t *testing.T) {
	needMounts(t)
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	if err := errors.Join(os.Mkdir(source, 0o755), os.Mkdir(target, 0o755)); err != nil {
		t.Fatal(err)
	}
	unmountAtEnd(t, target)
	for range 2 {
		if err := Bind(source, target); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	mounts, err := MountsBelow(dir)
	if err != nil || len(mounts) != 2 || mounts[0].Point != target || mounts[1].Point != target {
		t.Fatalf("%+v, %v; want two at %s", mounts, err, target)
	}
	if mounts[0].ReadOnly || !mounts[1].ReadOnly || mounts[0].ID == mounts[1].ID {
		t.Errorf("%+v; want the second read-only", mounts)
	}
	if mounted, err := MountedAt(target); err != nil || !mounted {
		t.Errorf("at the target: %t, %v", mounted, err)
	}
	// Of bind mounts one can be busy below another, without being told apart by
	// the path; so look at one that is alone.
	if err := Unmount(target); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmount(target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("while it is open: %v, want EBUSY", err)
	}
	open.Close()
	if err := Unmount(target); err != nil {
		t.Errorf("after that: %v", err)
	}
	if mounted, err := MountedAt(target); err != nil || mounted {
		t.Errorf("after all: %t, %v", mounted, err)
	}
	if err := Unmount(target); !errors.Is(err, unix.EINVAL) {
		t.Errorf("once more: %v, want EINVAL", err)
	}
	if err := Bind(filepath.Join(dir, "missing"), target); !errors.Is(err, unix.ENOENT) {
		t.Errorf("bind what is missing: %v, want ENOENT", err)
	}
}

// TestMountsWhileOthersMount reads a table of many pages while it changes. What
// is there all the time has to be in each reading, and the reader has to be told
// that it was torn.
func TestMountsWhileOthersMount(t *testing.T) {
	needMounts(t)
	const steady = 200
	dir := t.TempDir()
	point := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	for i := range steady {
		if err := os.Mkdir(point(i), 0o755); err != nil {
			t.Fatal(err)
		}
		unmountAtEnd(t, point(i))
		if err := Bind(point(i), point(i)); err != nil {
			t.Fatal(err)
		}
	}
	coming := t.TempDir()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := errors.Join(Bind(coming, coming), Unmount(coming)); err != nil {
				stopped <- err
				return
			}
		}
	}()
	torn := false
	for n := 0; (n < 50 || !torn) && !t.Failed(); n++ {
		_, whole, err := readMountTable()
		if err != nil {
			t.Fatal(err)
		}
		torn = torn || !whole
		mounts, err := MountsBelow(dir)
		if err != nil || len(mounts) != steady {
			t.Errorf("reading %d: %d mounts, %v; want %d", n, len(mounts), err, steady)
		}
		if n > 10000 {
			t.Error("the table was never torn, or nobody told")
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	await(t, "the table is whole", func() bool {
		_, whole, err := readMountTable()
		return err == nil && whole
	})
}
