package iscsi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// withSession makes a node up that has a session.
func withSession(t *testing.T) (*made, Session) {
	t.Helper()
	m := makeUp(t)
	m.session(1, "katbox", aTarget, aName, "LOGGED_IN")
	s, ok, err := m.i.Session(t.Context(), aTarget)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return m, s
}

func TestDevices(t *testing.T) {
	m, _ := withSession(t)
	ctx := t.Context()
	m.session(2, "default", aTarget, aName, "LOGGED_IN")
	m.disk(1, 1, 3, "volume-3")
	m.disk(2, 2, 4, "volume-4")
	m.file("0\n", m.diskDir(1, 9), "type") // no disk
	want := attach.Device{
		Name: "sd3", Path: m.path("dev/sd3"), Number: unix.Mkdev(250, 103), Host: 1, LUN: 3, Target: aTarget,
		Identity: attach.Identity{Serial: "volume-3"},
	}
	if devices, err := m.i.Devices(ctx, aTarget); err != nil || !slices.Equal(devices, []attach.Device{want}) {
		t.Errorf("%+v, %v", devices, err)
	}
	if d, err := m.i.DeviceByNumber(ctx, want.Number); err != nil || d != want {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := m.i.DeviceByNumber(ctx, unix.Mkdev(250, 204)); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("a stranger's disk: %+v, %v", d, err)
	}
	if d, err := m.i.DeviceByNumber(ctx, unix.Mkdev(250, 1)); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("no disk: %+v, %v", d, err)
	}
	m.must(os.Remove(m.path(m.diskDir(1, 3), "vpd_pg80")))
	if d, err := m.i.DeviceByNumber(ctx, want.Number); err != nil || d.Name != "sd3" || d.Serial != "" {
		t.Errorf("without a serial number: %+v, %v", d, err)
	}
	if devices, err := m.i.Devices(ctx, aTarget); err != nil || len(devices) != 1 || devices[0].Serial != "" {
		t.Errorf("without a serial number: %+v, %v", devices, err)
	}
	m.must(os.RemoveAll(m.path(m.diskDir(1, 3))))
	if d, err := m.i.DeviceByNumber(ctx, want.Number); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("one that is gone: %+v, %v", d, err)
	}
}

func TestScan(t *testing.T) {
	const wanted, other = "volume-1", "volume-2"
	for _, tt := range []struct {
		name         string
		there, array string // the serial number of the disk that is there, and of what the array has
		used         bool
		is           error
		left         string // the serial number of the disk afterwards
	}{
		{name: "appears", array: wanted, left: wanted},
		{name: "is there", there: wanted, array: wanted, left: wanted},
		{name: "is there and used", there: wanted, array: wanted, used: true, left: wanted},
		{name: "nothing", is: volume.ErrNotFound},
		{name: "another volume appears", array: other, is: attach.ErrNotOurs},
		{name: "another volume is there", there: other, array: other, is: attach.ErrNotOurs, left: other},
		{name: "stale", there: other, array: wanted, left: wanted},
		{name: "stale and used", there: other, array: wanted, used: true, is: attach.ErrNotOurs, left: other},
		{name: "the array took the LUN away", there: wanted, is: volume.ErrNotFound},
		{name: "the array took the LUN of a used disk away", there: wanted, used: true, is: volume.ErrUnavailable, left: wanted},
		{name: "the array gave the LUN away", there: wanted, array: other, is: attach.ErrNotOurs},
		{name: "the array gave the LUN of a used disk away", there: wanted, array: other, used: true, is: attach.ErrNotOurs, left: wanted},
		{name: "stale, and not this one either", there: "volume-3", array: other, is: attach.ErrNotOurs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, s := withSession(t)
			if tt.there != "" {
				m.disk(1, 1, 5, tt.there)
			}
			if tt.used {
				m.file("", m.diskDir(1, 5), "block/sd5/holders/dm-1")
			}
			if tt.array != "" {
				m.array[5] = tt.array
			}
			d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: wanted})
			if !errors.Is(err, tt.is) || err == nil && (d.Serial != wanted || d.LUN != 5 || d.Name != "sd5") {
				t.Errorf("%+v, %v, want %v", d, err, tt.is)
			}
			if err != nil && (!strings.Contains(err.Error(), "LUN 5") || !strings.Contains(err.Error(), aTarget)) {
				t.Errorf("%v does not say where", err)
			}
			// The pods of a volume must not write to the one that has its LUN now. In doubt their disk stays as it is.
			state, _ := os.ReadFile(m.path(m.diskDir(1, 5), "state"))
			if offline := strings.HasPrefix(string(state), "offline\n"); offline != (tt.name == "stale and used") {
				t.Errorf("the disk is offline: %t", offline)
			}
			left, err := os.ReadFile(m.path(m.diskDir(1, 5), "vpd_pg80"))
			if tt.left == "" && !errors.Is(err, fs.ErrNotExist) || tt.left != "" && string(left) != page(tt.left) {
				t.Errorf("left %q, want %q", left, tt.left)
			}
			if word, err := os.ReadFile(m.path("sys/class/scsi_host/host1/scan")); err != nil || len(word) > 0 && string(word) != "0 0 5" {
				t.Errorf("scanned %q, %v", word, err)
			}
		})
	}
}

// TestScanOfOfflineDisk: it is removed once its pods have ended.
func TestScanOfOfflineDisk(t *testing.T) {
	m, s := withSession(t)
	m.disk(1, 1, 5, "volume-1")
	m.array[5] = "volume-2"
	asked := m.i.inquire
	m.i.inquire = func(path string) (attach.Identity, error) {
		if state, _ := os.ReadFile(m.path(m.diskDir(1, 5), "state")); strings.HasPrefix(string(state), "offline") {
			return attach.Identity{}, unix.ENXIO // as the kernel says when such a disk is opened
		}
		return asked(path)
	}
	m.file("", m.diskDir(1, 5), "block/sd5/holders/dm-1")
	for range 2 {
		_, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-2"})
		if !errors.Is(err, attach.ErrNotOurs) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("in use: %v", err)
		}
	}
	m.must(os.Remove(m.path(m.diskDir(1, 5), "block/sd5/holders/dm-1")))
	if d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-2"}); err != nil || d.Serial != "volume-2" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestScanWithoutSerial: a disk that could not be told from others when it is unstaged is not used.
func TestScanWithoutSerial(t *testing.T) {
	m, s := withSession(t)
	m.array[5], m.mute = "volume-1", true
	d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"})
	if !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "vpd_pg80") {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := os.Stat(m.path(m.diskDir(1, 5))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the disk is left: %v", err)
	}
}

// TestScanOfANewNode: the kernel shows a disk a moment before its node can be opened.
func TestScanOfANewNode(t *testing.T) {
	m, s := withSession(t)
	m.array[3] = "volume-3"
	answer, asked := m.i.inquire, 0
	m.i.patience = time.Minute
	m.i.inquire = func(path string) (attach.Identity, error) {
		if asked++; asked%3 != 0 {
			return attach.Identity{}, &fs.PathError{Op: "open", Path: path, Err: []error{unix.ENXIO, unix.ENOENT}[asked%2]}
		}
		return answer(path)
	}
	for _, when := range []string{"a new disk", "a disk that is there"} {
		if d, err := m.i.Scan(t.Context(), s.Target, 3, Wanted{ID: "volume-3"}); err != nil || d.Name != "sd3" {
			t.Errorf("%s: %+v, %v", when, d, err)
		}
	}
	m.i.patience = 0
	m.i.inquire = func(string) (attach.Identity, error) { return attach.Identity{}, unix.ENXIO }
	if _, err := m.i.Scan(t.Context(), s.Target, 3, Wanted{ID: "volume-3"}); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("a node that cannot be opened: %v", err)
	}
}

func TestScanWhileDown(t *testing.T) {
	m, s := withSession(t)
	m.state(1, "FAILED")
	m.disk(1, 1, 5, "volume-1")
	m.i.inquire = func(string) (attach.Identity, error) {
		t.Error("asked the array")
		return attach.Identity{}, nil
	}
	_, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"})
	if !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "since") {
		t.Error(err)
	}
	d := attach.Device{Name: "sd5", Number: unix.Mkdev(250, 105), Host: 1, LUN: 5, Target: aTarget}
	if _, err := m.i.Rescan(t.Context(), d); !errors.Is(err, volume.ErrUnavailable) {
		t.Error(err)
	}
	m.gone(1)
	if _, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"}); !errors.Is(err, volume.ErrUnavailable) {
		t.Error(err)
	}
}

// TestScanStops: the session goes down while the disk has not appeared, and the caller has no time.
func TestScanStops(t *testing.T) {
	m, s := withSession(t)
	kernel.Inject(t, func(call, path string) error {
		if filepath.Base(path) == "scan" {
			m.state(1, "FAILED")
		}
		return nil
	})
	if _, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"}); !errors.Is(err, volume.ErrUnavailable) {
		t.Error(err)
	}
	m, s = withSession(t)
	ctx, cancel := context.WithCancel(t.Context())
	kernel.Inject(t, func(string, string) error { cancel(); return nil })
	_, err := m.i.Scan(ctx, s.Target, 5, Wanted{ID: "volume-1"})
	if !errors.Is(err, volume.ErrUnavailable) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestScanOfAChange: the array gives the LUN to another volume, after the kernel has read what was
// there.
func TestScanOfAChange(t *testing.T) {
	m, s := withSession(t)
	m.array[5] = "volume-2"
	kernel.Inject(t, func(call, path string) error {
		switch filepath.Base(path) {
		case "scan":
			m.disk(1, 1, 5, "volume-1")
		case "delete":
			return os.RemoveAll(filepath.Dir(path))
		}
		return nil
	})
	_, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"})
	if !errors.Is(err, attach.ErrNotOurs) || exists(m.path(m.diskDir(1, 5))) {
		t.Error(err)
	}
}

// TestScanElsewhere: the volume is there as another disk.
func TestScanElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name       string
		session    int
		state      string
		used, left bool
		is         error
	}{
		{name: "at another LUN", session: 1, state: "LOGGED_IN"},
		{name: "at another LUN and used", session: 1, state: "LOGGED_IN", used: true, left: true, is: volume.ErrBusy},
		{name: "of a session that is down", session: 2, state: "FAILED", left: true},
		{name: "of a session that is down, and used", session: 2, state: "FAILED", used: true, left: true, is: volume.ErrBusy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, s := withSession(t)
			m.session(tt.session, "katbox", aTarget, aName, tt.state)
			m.disk(tt.session, 1, 4, "volume-1")
			m.array[5] = "volume-1"
			if tt.used {
				m.file("", m.diskDir(tt.session, 4), "block/sd4/holders/dm-1")
			}
			if _, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"}); !errors.Is(err, tt.is) {
				t.Errorf("%v, want %v", err, tt.is)
			}
			if exists(m.path(m.diskDir(tt.session, 4))) != tt.left {
				t.Errorf("the other disk is left: %v", !tt.left)
			}
		})
	}
}

func TestRescan(t *testing.T) {
	m, _ := withSession(t)
	ctx := t.Context()
	m.disk(1, 1, 5, "volume-1")
	m.array[5] = "volume-1"
	devices, err := m.i.Devices(ctx, aTarget)
	if err != nil || len(devices) != 1 {
		t.Fatal(devices, err)
	}
	d := devices[0]
	if size, err := m.i.Rescan(ctx, d); err != nil || size != 1<<20 {
		t.Errorf("%d, %v", size, err)
	}
	if word, err := os.ReadFile(m.path(m.diskDir(1, 5), "rescan")); err != nil || string(word) != "1" {
		t.Errorf("%q, %v", word, err)
	}
	for _, size := range []string{"", "x\n", "-1\n", "99999999999999999999\n", "9223372036854775807\n"} {
		m.file(size, m.diskDir(1, 5), "block/sd5/size")
		if size, err := m.i.Rescan(ctx, d); err == nil {
			t.Errorf("size %d", size)
		}
	}
	m.array[5] = "volume-2"
	if _, err := m.i.Rescan(ctx, d); !errors.Is(err, attach.ErrNotOurs) {
		t.Error(err)
	}
	later := d
	later.Name = "sd6"
	if _, err := m.i.Rescan(ctx, later); !errors.Is(err, volume.ErrNotFound) {
		t.Error(err)
	}
	later = d
	later.Host = 9
	if _, err := m.i.Rescan(ctx, later); !errors.Is(err, volume.ErrNotFound) {
		t.Error(err)
	}
}

func TestDelete(t *testing.T) {
	m, _ := withSession(t)
	ctx := t.Context()
	m.disk(1, 1, 5, "volume-1")
	devices, err := m.i.Devices(ctx, aTarget)
	if err != nil || len(devices) != 1 {
		t.Fatal(devices, err)
	}
	d := devices[0]
	m.file("", m.diskDir(1, 5), "block/sd5/holders/dm-1")
	if err := m.i.Delete(ctx, d); !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), "dm-1") {
		t.Error(err)
	}
	m.file("mpath-360014\n", "sys/block/dm-1/dm/uuid")
	if err := m.i.Delete(ctx, d); !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), "multipath.conf") {
		t.Error(err)
	}
	m.must(os.RemoveAll(m.path(m.diskDir(1, 5), "block/sd5/holders")))
	anothers := d
	anothers.Serial = "volume-2"
	if err := m.i.Delete(ctx, anothers); !errors.Is(err, attach.ErrNotOurs) {
		t.Error(err)
	}
	for range 2 {
		if err := m.i.Delete(ctx, d); err != nil {
			t.Error(err)
		}
	}
	if exists(m.path(m.diskDir(1, 5))) {
		t.Error("the disk is still there")
	}
}

// TestDeleteLosesData: what cannot be written is lost, and said once.
func TestDeleteLosesData(t *testing.T) {
	m, _ := withSession(t)
	ctx := t.Context()
	m.disk(1, 1, 5, "volume-1")
	devices, err := m.i.Devices(ctx, aTarget)
	if err != nil || len(devices) != 1 {
		t.Fatal(devices, err)
	}
	kernel.Inject(t, func(call, path string) error {
		switch {
		case call == "Sync":
			return unix.EIO
		case filepath.Base(path) == "delete":
			return os.RemoveAll(filepath.Dir(path))
		}
		return nil
	})
	if err := m.i.Delete(ctx, devices[0]); !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), "lost") {
		t.Error(err)
	}
	if err := m.i.Delete(ctx, devices[0]); err != nil {
		t.Error(err)
	}
}

// TestGarbage writes nonsense into each file of sysfs in turn: errors, no panics, and nothing that
// hangs.
func TestGarbage(t *testing.T) {
	m, s := withSession(t)
	ctx := t.Context()
	m.session(2, "katbox", aTarget, aName, "FAILED")
	m.disk(1, 1, 5, "volume-1")
	m.disk(2, 2, 6, "volume-2")
	m.array[5] = "volume-1"
	device := attach.Device{
		Name: "sd5", Number: unix.Mkdev(250, 105), Host: 1, LUN: 5, Target: aTarget, Identity: attach.Identity{Serial: "volume-1"},
	}
	var files []string
	m.must(filepath.WalkDir(m.path("sys/devices"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	m.i.run = func(context.Context, ...string) (string, error) { return "", errors.New("no iscsiadm") }
	kernel.Inject(t, func(_, path string) error {
		if strings.HasPrefix(path, m.path("sys")) {
			return unix.EIO // nothing is removed
		}
		return nil
	})
	for _, path := range files {
		before, err := os.ReadFile(path)
		m.must(err)
		for _, garbage := range []string{
			"", "\n", "\x00", "(null)\n", "-1\n", "999999999999999999999999\n", "a:b:c:d\n", strings.Repeat("x", 10000), "\x00\x80\xff\xff",
			"\x00\x83\xff\xff\x01\x03\x00\xff",
		} {
			m.must(os.WriteFile(path, []byte(garbage), 0o600))
			_, _ = m.i.Sessions(ctx)
			_, _ = m.i.Devices(ctx, aTarget)
			_, _ = m.i.DeviceByNumber(ctx, device.Number)
			if d, err := m.i.Scan(ctx, s.Target, 5, Wanted{ID: "volume-1"}); err == nil && d.Serial != "volume-1" {
				t.Errorf("%s is %q: scan finds %+v", path, garbage, d)
			}
			if _, err := m.i.Rescan(ctx, device); err == nil {
				t.Errorf("%s is %q: a rescan without a write", path, garbage)
			}
			_ = m.i.Delete(ctx, device)
			_ = m.i.Logout(ctx, aTarget)
			_ = m.i.Login(ctx, aPortal, aCHAP)
		}
		m.must(os.WriteFile(path, before, 0o600))
	}
}

// TestScanOfALargeLUN: a LUN that is known under one of its two numbers is not looked for under the other one, which
// could make a second disk of the volume, even if it is not a disk yet.
func TestScanOfALargeLUN(t *testing.T) {
	for _, tt := range []struct {
		there, scanned string
	}{
		{"1:0:0:300", ""},
		{"1:0:0:16684", ""},
		{"1:0:0:301", "0 0 300"},
	} {
		m, s := withSession(t)
		m.file("", filepath.Dir(m.diskDir(1, 300)), tt.there, "type")
		if d, err := m.i.Scan(t.Context(), s.Target, 300, Wanted{ID: "volume-1"}); !errors.Is(err, volume.ErrNotFound) {
			t.Errorf("%s: %+v, %v", tt.there, d, err)
		}
		// The file keeps the end of what was written first.
		word, err := os.ReadFile(m.path("sys/class/scsi_host/host1/scan"))
		if err != nil || !strings.HasPrefix(string(word), tt.scanned) || (len(word) > 0) != (tt.scanned != "") {
			t.Errorf("%s is there: scanned %q, %v", tt.there, word, err)
		}
	}
}
