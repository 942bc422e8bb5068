package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestAttach: a pod looks at what another one left, and changes nothing. As long as it does, nothing
// deletes that: no person, no deadline, not after a SIGKILL either. Afterwards it goes.
func TestAttach(t *testing.T) {
	const looker, stranger = "7f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f", "8f1c8a52-1f4e-4f0e-9d43-6a1b2c3d4e5f"
	source := string(volume.KubeletID(testPod, "scratch"))
	d := newDaemon(t, "--afterlifespan", "1h", "--release-grace", "1s")
	d.makePod(looker)
	d.makePod(stranger)
	d.start()
	publish := func(pod, id, namespace, attach string, readOnly bool) error {
		req := d.request(pod, id)
		req.VolumeContext["csi.storage.k8s.io/pod.namespace"] = namespace
		if attach != "" {
			req.VolumeContext["attach"], req.Readonly = attach, readOnly
		}
		_, err := d.node.NodePublishVolume(t.Context(), req)
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const attach = testPod + "/scratch"
	must(publish(testPod, source, "ci", "", false))
	d.writeMarker(testPod)
	in := func(name string) string { return filepath.Join(d.target(testPod), name) }
	must(os.WriteFile(in("tool"), nil, 0o600))
	must(os.Chmod(in("tool"), 0o755|os.ModeSetuid))
	must(unix.Mknod(in("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	if err := publish(looker, volumeID(2), "ci", attach, true); status.Code(err) != codes.Aborted {
		t.Errorf("attach of a published volume: %v", err)
	}
	d.unpublish(testPod, source)

	for name, tt := range map[string]struct {
		namespace, attach string
		readOnly          bool
		code              codes.Code
	}{
		"another namespace": {"etl", attach, true, codes.NotFound},
		"no namespace":      {"", attach, true, codes.NotFound},
		"no such volume":    {"ci", testPod + "/other", true, codes.NotFound},
		"not read-only":     {"ci", attach, false, codes.InvalidArgument},
		"not a volume":      {"ci", "../x", true, codes.InvalidArgument},
		"one of the pod's":  {"ci", looker + "/scratch", true, codes.InvalidArgument},
		"of an unknown pod": {"ci", stranger + "/scratch", true, codes.NotFound},
	} {
		if err := publish(looker, volumeID(2), tt.namespace, tt.attach, tt.readOnly); status.Code(err) != tt.code || d.mounted(d.target(looker)) {
			t.Errorf("%s: %v, want %v", name, err, tt.code)
		}
	}

	must(publish(looker, volumeID(2), "ci", attach, true))
	if err := publish(stranger, volumeID(3), "ci", attach, true); status.Code(err) == codes.OK {
		t.Error("it is attached twice")
	}
	changesNothing := func(when string) {
		t.Helper()
		at := func(name string) string { return filepath.Join(d.target(looker), name) }
		if got, err := os.ReadFile(at("marker")); err != nil || string(got) != testPod {
			t.Fatalf("%s: marker %q, %v", when, got, err)
		}
		if err := os.WriteFile(at("marker"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: a write ends with %v", when, err)
		}
		if _, err := os.ReadFile(at("null")); !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s: a device is opened: %v", when, err)
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(d.target(looker), &fs); err != nil || fs.Flags&unix.ST_NOSUID == 0 {
			t.Errorf("%s: setuid has an effect (%v, flags %#x)", when, err, fs.Flags)
		}
		if err := d.admin().Purge(t.Context(), source, ""); err == nil {
			t.Errorf("%s: it was purged", when)
		}
	}
	changesNothing("attached")
	d.crash()
	changesNothing("after a SIGKILL")
	must(publish(looker, volumeID(2), "ci", attach, true)) // the kubelet repeats it
	_, err := d.admin().Release(t.Context(), source, "")
	must(err)
	releasedLater(d, stranger)
	changesNothing("after its deadline")

	d.unpublish(looker, volumeID(2))
	d.eventually("it goes when no pod has it attached", d.gone(testPod, source))
	if exists(d.data(looker, volumeID(2))) {
		t.Error("the pod that looked has left a directory")
	}
	if list, err := d.admin().Volume(t.Context(), volumeID(2)); err == nil {
		t.Errorf("the volume of the pod that looked is known: %+v", list)
	}
}

// releasedLater returns when a volume is gone that was released later.
func releasedLater(d *daemon, pod string) {
	d.t.Helper()
	d.publish(pod, volumeID(4))
	d.unpublish(pod, volumeID(4))
	if _, err := d.admin().Release(d.t.Context(), volumeID(4), ""); err != nil {
		d.t.Fatal(err)
	}
	d.eventually("the volume that was released later goes", d.gone(pod, volumeID(4)))
}
