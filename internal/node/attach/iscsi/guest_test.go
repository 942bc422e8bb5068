package iscsi

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

var (
	portalOfA = Portal{Target: lioTarget, Address: portalA}
	portalOfB = Portal{Target: lioTarget, Address: portalB + ":3260"}
	rightCHAP = CHAP{User: lioUser, Secret: lioSecret}
)

// TestArrayDisk goes the whole way of a volume with a real target.
func TestArrayDisk(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	l.disk("volume-1", 64)
	l.disk("volume-2", 64)
	l.attach("volume-1", 1, ourName)
	l.attach("volume-2", 2, ourName)
	i, args := real(t)
	ctx := t.Context()

	if err := i.Login(ctx, portalOfA, CHAP{User: lioUser, Secret: "another secret"}); !errors.Is(err, ErrAuth) ||
		!strings.Contains(err.Error(), lioTarget) || !strings.Contains(err.Error(), portalA) || strings.Contains(err.Error(), "another secret") {
		t.Errorf("wrong secret: %v", err)
	}
	for range 2 {
		if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
			t.Fatal(err)
		}
	}
	s := mustSession(t, i)
	if !s.LoggedIn || s.Address != portalA+":3260" || s.Initiator != ourName || !s.Since.IsZero() {
		t.Errorf("%+v", s)
	}
	if disks := scsiDisks(t); len(disks) > 0 {
		t.Errorf("disks after a login: %v", disks)
	}
	record := "/etc/iscsi/nodes/" + lioTarget + "/" + portalA + ",3260,1/katbox"
	if info, err := os.Stat(record); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	shown := sh(t, "iscsiadm -m node -I katbox -T %s -p %s -o show; cat /sys/class/iscsi_session/session%d/recovery_tmo",
		lioTarget, portalA, s.ID)
	for _, want := range []string{
		"node.startup = manual", "node.conn[0].startup = manual", "node.session.scan = manual", "node.session.timeo.replacement_timeout = 300",
		"\n300",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %s", want, shown)
		}
	}

	d, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"})
	if err != nil {
		t.Fatal(err)
	}
	if kernels := sh(t, "cat /sys/block/%s/device/wwid", d.Name); d.WWID != kernels {
		t.Errorf("the disk has the WWID %s, and to the kernel %s", d.WWID, kernels)
	}
	again, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"})
	if err != nil || again != d || len(scsiDisks(t)) != 1 {
		t.Errorf("%+v, %+v, %v, %v", d, again, scsiDisks(t), err)
	}
	if byNumber, err := i.DeviceByNumber(ctx, d.Number); err != nil || byNumber != d {
		t.Errorf("by number: %+v, %v", byNumber, err)
	}
	var loop unix.Stat_t
	if err := unix.Stat(l.loops["volume-1"], &loop); err != nil {
		t.Fatal(err)
	}
	if _, err := i.DeviceByNumber(ctx, loop.Rdev); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("a loop device by number: %v", err)
	}
	if devices, err := i.Devices(ctx, lioTarget); err != nil || !slices.Equal(devices, []attach.Device{d}) {
		t.Errorf("%+v, %v", devices, err)
	}
	if _, err := i.Scan(ctx, s.Target, 2, Wanted{ID: "volume-1"}); !errors.Is(err, attach.ErrNotOurs) || len(scsiDisks(t)) != 0 {
		// It has moved there, as far as the call knows: the unused disk at LUN 1 is removed.
		t.Errorf("another volume's LUN: %v, %v", err, scsiDisks(t))
	}
	if d, err = i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"}); err != nil {
		t.Fatal(err)
	}
	i.patience = i.pause
	if _, err := i.Scan(ctx, s.Target, 7, Wanted{ID: "volume-7"}); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("no LUN: %v", err)
	}

	isSize(t, "/sys/block/"+d.Name+"/size", 64<<20)
	l.grow("volume-1", 96)
	if size, err := i.Rescan(ctx, d); err != nil || size != 96<<20 {
		t.Errorf("%d, %v", size, err)
	}
	users(t, i, d)

	if err := i.Logout(ctx, lioTarget); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("logout with a disk: %v", err)
	}
	if err := i.Forget(ctx, lioTarget); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("forget with a session: %v", err)
	}
	for range 2 {
		if err := i.Delete(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := i.Rescan(ctx, d); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("rescan of a deleted disk: %v", err)
	}
	if _, err := i.DeviceByNumber(ctx, d.Number); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("a deleted disk by number: %v", err)
	}
	for range 2 {
		if err := errors.Join(i.Logout(ctx, lioTarget), i.Forget(ctx, lioTarget)); err != nil {
			t.Fatal(err)
		}
	}
	if s, ok, err := i.Session(ctx, lioTarget); ok || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if exists(record) || exists("/etc/iscsi/ifaces/katbox") {
		t.Error("records: ", sh(t, "find /etc/iscsi -type f"))
	}
	if slices.ContainsFunc(*args, func(arg string) bool {
		return strings.Contains(arg, lioSecret) || strings.Contains(arg, "another secret")
	}) {
		t.Errorf("a secret in %q", *args)
	}
}

// users checks that a disk is not deleted while something uses it.
func users(t *testing.T, i *Initiator, d attach.Device) {
	t.Helper()
	refused := func(what, why string) {
		t.Helper()
		if err := i.Delete(t.Context(), d); !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), why) {
			t.Errorf("delete of a disk that is %s: %v", what, err)
		}
	}
	sh(t, "mke2fs -q -t ext4 %s", d.Path)
	dir := t.TempDir()
	if err := unix.Mount(d.Path, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	refused("mounted", "mounted at "+dir)
	if _, err := i.Scan(t.Context(), mustSession(t, i).Target, 2, Wanted{ID: d.Serial}); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("scan of a volume that is mounted, at another LUN: %v", err)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(dir, "node")
	if err := os.WriteFile(node, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(d.Path, node, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	refused("bound elsewhere", node)
	if err := unix.Unmount(node, 0); err != nil {
		t.Fatal(err)
	}
	loop := sh(t, "losetup --find --show %s", d.Path)
	refused("behind a loop device", "behind "+filepath.Base(loop))
	sh(t, "losetup -d %s", loop)
	until(t, "the loop device is free", func() bool { return !exists("/sys/block/" + filepath.Base(loop) + "/loop") })
	file, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	refused("open", "open in process")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	// Where no process is seen, a claim of the disk still is.
	proc := i.proc
	i.proc = t.TempDir()
	claim, err := os.OpenFile(d.Path, os.O_RDONLY|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Delete(t.Context(), d); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("delete of a disk that is claimed: %v", err)
	}
	i.proc = proc
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestArrayStranger: the host has a session to the same target, with the same LUN.
func TestArrayStranger(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	l.disk("volume-1", 32)
	l.attach("volume-1", 1, ourName, itsName)
	stopISCSID(t)
	sh(t, "echo InitiatorName=%s >%s; iscsid", itsName, nameFile)
	theHost(t)
	until(t, "the host's disk", func() bool { return len(scsiDisks(t)) == 1 })
	its := scsiDisks(t)[0]
	i, _ := real(t)
	ctx := t.Context()
	if all, err := i.Sessions(ctx); err != nil || len(all) != 0 {
		t.Errorf("ours: %+v, %v", all, err)
	}
	if err := errors.Join(i.Logout(ctx, lioTarget), i.Forget(ctx, lioTarget), i.Login(ctx, portalOfA, rightCHAP)); err != nil {
		t.Fatal(err)
	}
	// The host's own discovery does not use our interface.
	sh(t, "iscsiadm -m discovery -t st -p %s", portalA)
	dir := "/etc/iscsi/nodes/" + lioTarget + "/" + portalA + ",3260,1/"
	records, err := filepath.Glob("/etc/iscsi/nodes/*/*/*")
	if err != nil || !slices.Equal(records, []string{dir + "default", dir + "katbox"}) {
		t.Errorf("records after a discovery by the host: %v, %v", records, err)
	}
	s := mustSession(t, i)
	d, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"})
	if err != nil || "/sys/block/"+d.Name == its {
		t.Fatalf("%+v beside %s, %v", d, its, err)
	}
	stranger := d
	stranger.Name, stranger.Path = filepath.Base(its), "/dev/"+filepath.Base(its)
	if _, err := i.Rescan(ctx, stranger); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("rescan of the host's disk: %v", err)
	}
	if err := errors.Join(i.Delete(ctx, stranger), i.Delete(ctx, d), i.Logout(ctx, lioTarget), i.Forget(ctx, lioTarget)); err != nil {
		t.Fatal(err)
	}
	if records, err = filepath.Glob("/etc/iscsi/nodes/*/*/*"); err != nil || !slices.Equal(records, []string{dir + "default"}) {
		t.Errorf("records that are left: %v, %v", records, err)
	}
	if disks := scsiDisks(t); !slices.Equal(disks, []string{its}) || exists("/sys/class/iscsi_session/session"+strconv.Itoa(s.ID)) {
		t.Errorf("what is left: %v, %s", disks, sh(t, "ls /sys/class/iscsi_session"))
	}
	if err := writeBlock("/dev/" + filepath.Base(its)); err != nil {
		t.Errorf("the host's disk: %v", err)
	}
	sh(t, "iscsiadm -m node -I default -T %s -p %s -u", lioTarget, portalA)
}

// TestArrayReusesLUN: the array gives the LUN of a volume that was detached to another one.
func TestArrayReusesLUN(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	l.disk("volume-1", 32)
	l.disk("volume-2", 64)
	l.attach("volume-1", 1, ourName)
	i, _ := real(t)
	ctx := t.Context()
	if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
		t.Fatal(err)
	}
	s := mustSession(t, i)
	stale, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"})
	if err != nil {
		t.Fatal(err)
	}
	l.detach(1)
	l.attach("volume-2", 1, ourName)
	if serial := sh(t, "tr -dc 'a-z0-9-' </sys/block/%s/device/vpd_pg80", stale.Name); serial != "volume-1" {
		t.Errorf("the kernel knows of the exchange: %s", serial)
	}
	held, err := os.OpenFile(stale.Path, os.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Rescan(ctx, stale); !errors.Is(err, attach.ErrNotOurs) {
		t.Errorf("rescan of the stale disk: %v", err)
	}
	for _, serial := range []string{"volume-1", "volume-2"} {
		if _, err := i.Scan(ctx, s.Target, 1, Wanted{ID: serial}); !errors.Is(err, attach.ErrNotOurs) {
			t.Errorf("scan for %s while the stale disk is open: %v", serial, err)
		}
	}
	// What the first volume's pods write does not get into the second volume.
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.WriteAt(page, 0); err == nil {
		t.Errorf("the stale disk takes what is written to it; it is %s", sh(t, "cat /sys/block/%s/device/state", stale.Name))
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-2"})
	if err != nil {
		t.Fatal(err)
	}
	isSize(t, "/sys/block/"+d.Name+"/size", 64<<20)
	if _, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"}); !errors.Is(err, attach.ErrNotOurs) || len(scsiDisks(t)) != 1 {
		t.Errorf("%v, %v", err, scsiDisks(t))
	}
	// Detached without a word: the disk is still here, and goes.
	l.detach(1)
	if err := i.Delete(ctx, d); err != nil {
		t.Log("delete of a disk that the array has detached: ", err)
	}
	if err := i.Delete(ctx, d); err != nil || len(scsiDisks(t)) != 0 {
		t.Errorf("%v, %v", err, scsiDisks(t))
	}
	if err := i.Logout(ctx, lioTarget); err != nil {
		t.Error(err)
	}
}

// TestArrayAway: an array that is away and comes back, with I/O in between, iscsid restarted, and a
// new process.
func TestArrayAway(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	l.disk("volume-1", 32)
	l.attach("volume-1", 1, ourName)
	i, _ := real(t)
	ctx := t.Context()
	if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
		t.Fatal(err)
	}
	s := mustSession(t, i)
	d, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"})
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, restart := range []bool{false, true} {
		l.serve(false)
		until(t, "the session is down", func() bool { return !mustSession(t, i).LoggedIn })
		if restart {
			stopISCSID(t)
			sh(t, "iscsid")
			i, _ = real(t)
		}
		down := mustSession(t, i)
		if down.Since.IsZero() || down.ID != s.ID || mustSession(t, i).Since != down.Since {
			t.Errorf("%+v", down)
		}
		if err := i.Login(ctx, portalOfA, rightCHAP); !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "since") {
			t.Errorf("login: %v", err)
		}
		if _, err := i.Scan(ctx, s.Target, 1, Wanted{ID: "volume-1"}); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("scan: %v", err)
		}
		if _, err := i.Rescan(ctx, d); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("rescan: %v", err)
		}
		if err := i.Logout(ctx, lioTarget); !errors.Is(err, volume.ErrBusy) {
			t.Errorf("logout: %v", err)
		}
		if devices, err := i.Devices(ctx, lioTarget); err != nil || !slices.Equal(devices, []attach.Device{d}) {
			t.Errorf("%+v, %v", devices, err)
		}
		written := make(chan error, 1)
		go func() { written <- writeBlock(d.Path) }()
		until(t, "the write waits", func() bool { return sh(t, "cat /sys/block/%s/device/state", d.Name) == "blocked" })
		l.serve(true)
		if err := <-written; err != nil {
			t.Errorf("a write while the array was away: %v", err)
		}
		until(t, "the session is up", func() bool { return mustSession(t, i).LoggedIn })
		if up := mustSession(t, i); !up.Since.IsZero() || up.ID != s.ID {
			t.Errorf("%+v", up)
		}
	}
	if err := errors.Join(held.Close(), i.Delete(ctx, d), i.Logout(ctx, lioTarget), i.Forget(ctx, lioTarget)); err != nil {
		t.Error(err)
	}
}

// TestArrayMoves: the portal's address changes while a disk is in use.
func TestArrayMoves(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	l.disk("volume-1", 32)
	l.disk("volume-2", 32)
	l.attach("volume-1", 1, ourName)
	l.attach("volume-2", 2, ourName)
	i, _ := real(t)
	ctx := t.Context()
	if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
		t.Fatal(err)
	}
	first := mustSession(t, i)
	d, err := i.Scan(ctx, first.Target, 1, Wanted{ID: "volume-1"})
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	// A session that is alive stays, whatever the address.
	if err := i.Login(ctx, portalOfB, rightCHAP); err != nil || mustSession(t, i) != first {
		t.Errorf("%+v, %v", mustSession(t, i), err)
	}
	l.serve(false)
	l.leave(portalA)
	l.listen(portalB)
	l.serve(true)
	until(t, "the session is down", func() bool { return !mustSession(t, i).LoggedIn })
	if err := i.Login(ctx, portalOfB, rightCHAP); err != nil {
		t.Fatal(err)
	}
	second := mustSession(t, i)
	if second.ID == first.ID || second.Address != portalB+":3260" || !second.LoggedIn {
		t.Errorf("%+v", second)
	}
	if _, err := i.Scan(ctx, second.Target, 1, Wanted{ID: "volume-1"}); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("scan of a volume that is in use behind the old address: %v", err)
	}
	d2, err := i.Scan(ctx, second.Target, 2, Wanted{ID: "volume-2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Delete(ctx, d2); err != nil {
		t.Error(err)
	}
	if err := i.Logout(ctx, lioTarget); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("logout while a disk of the first session is in use: %v", err)
	}
	if all, err := i.Sessions(ctx); err != nil || len(all) != 1 || all[0].ID != first.ID {
		t.Errorf("the session without disks ends: %+v, %v", all, err)
	}
	// The array is back at the old address: I/O goes on.
	l.listen(portalA)
	until(t, "the first session is up", func() bool {
		all, err := i.Sessions(ctx)
		return err == nil && slices.ContainsFunc(all, func(s Session) bool { return s.ID == first.ID && s.LoggedIn })
	})
	if err := errors.Join(writeBlock(d.Path), held.Close(), i.Delete(ctx, d), i.Logout(ctx, lioTarget), i.Forget(ctx, lioTarget)); err != nil {
		t.Error(err)
	}
	if all, err := i.Sessions(ctx); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestArrayDoesNotAnswer: statuses of a real iscsiadm.
func TestArrayDoesNotAnswer(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	l.disk("volume-1", 32)
	i, _ := real(t)
	ctx := t.Context()
	for _, tt := range []struct {
		name string
		p    Portal
		is   error
		says string
	}{
		{"unknown target", Portal{Target: "iqn.2026-11.io.katbox.test:other", Address: portalA}, volume.ErrUnavailable, "target"},
		{"nothing listens", Portal{Target: lioTarget, Address: portalB}, volume.ErrUnavailable, "does not take logins"},
	} {
		if err := i.Login(ctx, tt.p, rightCHAP); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		} else {
			t.Log(err)
		}
	}
	stopISCSID(t)
	err := i.Login(ctx, portalOfA, rightCHAP)
	if !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "iscsid") {
		t.Errorf("no iscsid: %v", err)
	}
	t.Log(err)
	if out, err := exec.Command("pgrep", "-x", "iscsid").CombinedOutput(); err == nil {
		t.Logf("iscsiadm started iscsid: %s", out)
	}
	sh(t, "iscsid")
	if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
		t.Error(err)
	}
	// A session that is down and has no disks that are used is made anew.
	first := mustSession(t, i)
	l.serve(false)
	until(t, "the session is down", func() bool { return !mustSession(t, i).LoggedIn })
	l.serve(true)
	if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
		t.Error(err)
	}
	if s := mustSession(t, i); !s.LoggedIn {
		t.Errorf("%+v after %+v", s, first)
	}
	// iscsid that was restarted meanwhile does not end it.
	l.serve(false)
	until(t, "the session is down", func() bool { return !mustSession(t, i).LoggedIn })
	stopISCSID(t)
	sh(t, "iscsid")
	for name, call := range map[string]func() error{
		"login":  func() error { return i.Login(ctx, portalOfA, rightCHAP) },
		"logout": func() error { return i.Logout(ctx, lioTarget) },
	} {
		if err := call(); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("%s after a restart of iscsid: %v", name, err)
		}
	}
	l.serve(true)
	until(t, "the session is up", func() bool { return mustSession(t, i).LoggedIn })
	if err := errors.Join(i.Logout(ctx, lioTarget), i.Forget(ctx, lioTarget)); err != nil {
		t.Error(err)
	}
}

// TestArrayLargeLUN: an array encodes a LUN above 255 in one of two ways, and knows no other. LIO takes the
// number as it is; a LUN of its own with bit 14 stands for that of an array that wants the flat format of SAM.
func TestArrayLargeLUN(t *testing.T) {
	l := newLIO(t, portalA)
	iscsid(t)
	luns := map[string]int{"volume-1": 300, "volume-2": 301}
	l.disk("volume-1", 32)
	l.disk("volume-2", 64)
	l.attach("volume-1", luns["volume-1"], ourName)
	l.attach("volume-2", luns["volume-2"]|1<<14, ourName)
	i, _ := real(t)
	ctx := t.Context()
	if err := i.Login(ctx, portalOfA, rightCHAP); err != nil {
		t.Fatal(err)
	}
	for name, lun := range luns {
		d, err := i.Scan(ctx, lioTarget, lun, Wanted{ID: name})
		if err != nil || d.LUN != lun {
			t.Errorf("LUN %d: %+v, %v", lun, d, err)
			continue
		}
		if again, err := i.Scan(ctx, lioTarget, lun, Wanted{ID: name}); err != nil || again != d {
			t.Errorf("again: %+v, %v", again, err)
		}
		if other, err := i.DeviceByNumber(ctx, d.Number); err != nil || other != d {
			t.Errorf("by number: %+v, %v, want %+v", other, err, d)
		}
		if _, err := i.Rescan(ctx, d); err != nil {
			t.Error(err)
		}
		if err := i.Delete(ctx, d); err != nil {
			t.Error(err)
		}
	}
	if err := i.Logout(ctx, lioTarget); err != nil || len(scsiDisks(t)) != 0 {
		t.Errorf("%v, %v", err, scsiDisks(t))
	}
}
