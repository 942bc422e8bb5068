package nfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/node/attach/nfs"
	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

var tools = disk.Tools{Log: logr.Discard()}

// directory makes a directory, whose mounts go at the end of the test.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	roottest.UnmountAtEnd(t, dir)
	return dir
}

func mountedAt(t *testing.T, path string) attach.Mount {
	t.Helper()
	table, err := attach.Table()
	if err != nil {
		t.Fatal(err)
	}
	there, _ := attach.At(table, path)
	return there
}

func TestArrayMount(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v, other := a.Create(t, "one", 1, false), a.Create(t, "two", 1, false)
	stranger := a.Attach(t, v, attachtest.Node{Name: "stranger", Address: "10.255.0.99"}, false)
	dir := directory(t)
	err := nfs.Mount(stranger.Export, dir, nil, false)
	if !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "has not exported") || !strings.Contains(err.Error(), node.Address) {
		t.Errorf("before it is attached: %v", err)
	}
	export := a.Attach(t, v, node, false).Export
	for range 2 {
		if err := nfs.Mount(export, dir, []string{"noatime", "nosuid", "timeo=100", "retrans=5"}, false); err != nil {
			t.Fatal(err)
		}
	}
	there := mountedAt(t, dir)
	if there.FSType != "nfs4" || there.Source != export || there.ReadOnly || !slices.Contains(there.Flags, "nosuid") {
		t.Errorf("%+v", there)
	}
	for _, option := range []string{"vers=4.2", "hard", "timeo=100", "retrans=5"} {
		if !slices.Contains(there.Options, option) {
			t.Errorf("%s is not among %q", option, there.Options)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("data"), 0o600); err != nil {
		t.Error(err)
	}
	if stats, err := tools.Stats(dir); err != nil || stats.Abnormal || stats.Space.Total.Bytes < 900<<20 {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := nfs.Mount(export, dir, []string{"timeo=200"}, false); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("with other options: %v", err)
	}
	if err := nfs.Mount(export, dir, nil, true); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("read-only: %v", err)
	}
	second := a.Attach(t, other, node, false).Export
	if err := nfs.Mount(second, dir, nil, false); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("another export: %v", err)
	}
	readOnly, bound := directory(t), filepath.Join(t.TempDir(), "bound")
	if err := nfs.Mount(second, readOnly, nil, true); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(readOnly, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("write to one that is read-only: %v", err)
	}
	roottest.UnmountAtEnd(t, bound)
	if err := tools.Bind(dir, bound, nil, true); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(bound, "file")); err != nil || string(data) != "data" {
		t.Errorf("%q, %v", data, err)
	}
	open, err := os.Open(filepath.Join(bound, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tools.Unmount(bound); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("unmount while a file is open: %v", err)
	}
	open.Close()
	for _, path := range []string{bound, dir} {
		if err := errors.Join(tools.Unmount(path), tools.Remove(path)); err != nil {
			t.Error(err)
		}
	}
}

func TestArrayVersions(t *testing.T) {
	a := attachtest.NewArray(t)
	export := a.Attach(t, a.Create(t, "one", 1, false), attachtest.ThisNode(t), false).Export
	for version, shown := range map[string]string{"4.2": "4.2", "4.1": "4.1", "4.0": "4.0", "4": "4.2"} {
		dir := directory(t)
		for range 2 { // the second one finds what it asks for
			if err := nfs.Mount(export, dir, []string{"nfsvers=" + version, "bg", "intr"}, false); err != nil {
				t.Errorf("%s: %v", version, err)
			}
		}
		if there := mountedAt(t, dir); !slices.Contains(there.Options, "vers="+shown) {
			t.Errorf("%s: %+v", version, there)
		}
	}
}

// TestArrayIPv6 mounts what an array with an address of IPv6 exports.
func TestArrayIPv6(t *testing.T) {
	a := attachtest.NewArray(t)
	v := a.Create(t, "one", 1, false)
	// It brings the server up; this one here is exported to all.
	a.Attach(t, v, attachtest.ThisNode(t), false)
	path := attachtest.Export(v)
	attachtest.Run(t, "exportfs", "-o", "rw,insecure,no_root_squash,no_subtree_check", "*:"+path)
	t.Cleanup(func() { attachtest.Run(t, "exportfs", "-u", "*:"+path) })
	dir := directory(t)
	for range 2 {
		if err := nfs.Mount("[::1]:"+path, dir, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if there := mountedAt(t, dir); !slices.Contains(there.Options, "proto=tcp6") || there.Source != "[::1]:"+path {
		t.Errorf("%+v", there)
	}
}

// TestArrayHostName mounts from a host that is given by name.
func TestArrayHostName(t *testing.T) {
	a := attachtest.NewArray(t)
	export := a.Attach(t, a.Create(t, "one", 1, false), attachtest.ThisNode(t), false).Export
	address, path, _ := strings.Cut(export, ":")
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile("/etc/hosts", hosts, 0o600) })
	if err := os.WriteFile("/etc/hosts", append(hosts, address+" nas.example\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := directory(t)
	if err := nfs.Mount("nas.example:"+path, dir, nil, false); err != nil {
		t.Fatal(err)
	}
	if there := mountedAt(t, dir); there.Source != "nas.example:"+path || !slices.Contains(there.Options, "addr="+address) {
		t.Errorf("%+v", there)
	}
}

// TestArrayCutOff: a volume that was detached while it was mounted can be unmounted, and says what is wrong.
func TestArrayCutOff(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "lost", 1, false)
	dir := directory(t)
	if err := nfs.Mount(a.Attach(t, v, node, false).Export, dir, []string{"actimeo=0"}, false); err != nil {
		t.Fatal(err)
	}
	a.Detach(t, v, node)
	if stats, err := tools.Stats(dir); err != nil || !stats.Abnormal || stats.Condition == "" {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := tools.Unmount(dir); err != nil {
		t.Error(err)
	}
}
