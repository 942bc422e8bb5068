package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// Of the array that the kernel plays.
const (
	lioTarget = "iqn.2026-11.io.katbox.test:array"
	lioUser   = "node"
	lioSecret = `se cret#="x'$%`
	ourName   = "iqn.2026-11.io.katbox:c1:node-1"
	itsName   = "iqn.2026-11.io.katbox.test:host"
	portalA   = "10.9.0.1"
	portalB   = "10.9.0.2"
)

// lio is a target of the kernel (LIO), made through configfs.
type lio struct {
	t     *testing.T
	group string
	dir   string
	loops map[string]string
	// name is the content of the file of the host's initiator name.
	name []byte
}

const nameFile = "/etc/iscsi/initiatorname.iscsi"

const configfs = "/sys/kernel/config"

func sh(t *testing.T, format string, args ...any) string {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	out, err := exec.Command("bash", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

func newLIO(t *testing.T, portals ...string) *lio {
	t.Helper()
	attachtest.Need(t)
	sh(t, `modprobe -a loop target_core_mod target_core_iblock iscsi_target_mod iscsi_tcp sd_mod
		mountpoint -q %[1]s || mount -t configfs none %[1]s
		for a in %[2]s %[3]s; do ip address add $a/32 dev lo 2>/dev/null || true; done`, configfs, portalA, portalB)
	l := &lio{t: t, dir: t.TempDir(), group: configfs + "/target/iscsi/" + lioTarget + "/tpgt_1", loops: make(map[string]string)}
	l.name, _ = os.ReadFile(nameFile)
	t.Cleanup(l.end)
	sh(t, `mkdir -p %[1]s/acls; echo 1 >%[1]s/attrib/authentication; echo 0 >%[1]s/attrib/generate_node_acls`, l.group)
	for _, name := range []string{ourName, itsName} {
		sh(t, `mkdir %[1]s; echo -n %[2]s >%[1]s/auth/userid`, l.acl(name), lioUser)
		l.must(os.WriteFile(l.acl(name)+"/auth/password", []byte(lioSecret), 0o600))
	}
	for _, portal := range portals {
		l.listen(portal)
	}
	l.serve(true)
	return l
}

func (l *lio) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lio) acl(name string) string { return l.group + "/acls/" + name }
func (l *lio) listen(address string)  { l.must(os.Mkdir(l.group+"/np/"+address+":3260", 0o755)) }
func (l *lio) leave(address string)   { l.must(os.Remove(l.group + "/np/" + address + ":3260")) }

// serve lets the target take logins. When it stops, it ends all sessions.
func (l *lio) serve(on bool) {
	value := "0"
	if on {
		value = "1"
	}
	l.must(os.WriteFile(l.group+"/enable", []byte(value), 0o600))
}

// disk makes a volume, which has its name as its serial number.
func (l *lio) disk(name string, megabytes int) {
	l.t.Helper()
	image := filepath.Join(l.dir, name)
	l.must(os.WriteFile(image, nil, 0o600))
	l.must(os.Truncate(image, int64(megabytes)<<20))
	l.loops[name] = sh(l.t, "losetup --find --show %s", image)
	sh(l.t, `mkdir -p %[1]s; echo udev_path=%[2]s >%[1]s/control; echo -n %[3]s >%[1]s/wwn/vpd_unit_serial; echo 1 >%[1]s/enable`,
		store(name), l.loops[name], name)
}

func store(name string) string { return configfs + "/target/core/iblock_0/" + name }

// attach gives a volume to initiators at a LUN.
func (l *lio) attach(name string, lun int, initiators ...string) {
	l.t.Helper()
	sh(l.t, `mkdir -p %[1]s/lun/lun_%[2]d; ln -s %[3]s %[1]s/lun/lun_%[2]d/v`, l.group, lun, store(name))
	for _, initiator := range initiators {
		sh(l.t, `mkdir %[1]s/lun_%[2]d; ln -s %[3]s/lun/lun_%[2]d %[1]s/lun_%[2]d/v`, l.acl(initiator), lun, l.group)
	}
}

func (l *lio) detach(lun int) {
	l.t.Helper()
	sh(l.t, `for a in %[1]s/acls/*; do if [ -e $a/lun_%[2]d ]; then rm $a/lun_%[2]d/v; rmdir $a/lun_%[2]d; fi; done
		rm %[1]s/lun/lun_%[2]d/v; rmdir %[1]s/lun/lun_%[2]d`, l.group, lun)
}

func (l *lio) grow(name string, megabytes int) {
	l.must(os.Truncate(filepath.Join(l.dir, name), int64(megabytes)<<20))
	sh(l.t, "losetup -c %s", l.loops[name])
}

// end logs all sessions out, and takes everything away.
func (l *lio) end() {
	l.t.Helper()
	sh(l.t, `pgrep -x iscsid >/dev/null || iscsid
		for s in /sys/class/iscsi_session/session*; do if [ -e $s ]; then iscsiadm -m session -r ${s##*session} -u || true; fi; done
		rm -rf /etc/iscsi/nodes /etc/iscsi/send_targets /etc/iscsi/ifaces; cd %s; echo 0 >enable
		for d in acls/*/lun_*; do if [ -e $d ]; then rm $d/v; rmdir $d; fi; done; for d in acls/* np/*; do rmdir $d; done
		for d in lun/lun_*; do if [ -e $d ]; then rm $d/v; rmdir $d; fi; done`, l.group)
	sh(l.t, "rmdir %s %s", l.group, filepath.Dir(l.group))
	for name, loop := range l.loops {
		sh(l.t, "rmdir %s; losetup -d %s", store(name), loop)
	}
	// The other tests in this machine need it, and the host's name.
	stopISCSID(l.t)
	if l.name != nil {
		l.must(os.WriteFile(nameFile, l.name, 0o600))
	}
	sh(l.t, "iscsid")
}

// iscsid runs the host's daemon, without a name of the host's own.
func iscsid(t *testing.T) {
	t.Helper()
	stopISCSID(t)
	// iscsid.conf of Debian starts it by systemd.
	sh(t, "rm -f /etc/iscsi/initiatorname.iscsi; mkdir -p /run/lock; sed -i 's,^iscsid.startup.*,,' /etc/iscsi/iscsid.conf; iscsid")
}

// stopISCSID kills it. It has a second process, which writes its log.
func stopISCSID(t *testing.T) {
	t.Helper()
	sh(t, `pkill -KILL -x iscsid; while pgrep -x iscsid; do sleep 0.05; done >/dev/null`)
}

// real returns an Initiator, as a new process makes it, and the arguments of all commands that it
// runs.
func real(t *testing.T) (*Initiator, *[]string) {
	t.Helper()
	i, err := New(Config{Interface: "katbox", IQN: func(context.Context) (string, error) { return ourName, nil }})
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	run := i.run
	i.run = func(ctx context.Context, command ...string) (string, error) {
		args = append(args, command...)
		return run(ctx, command...)
	}
	return i, &args
}

// theHost logs in as the host's administrator does: by the default interface, with a name in
// iscsid's file.
func theHost(t *testing.T) {
	t.Helper()
	l := "/etc/iscsi/nodes/" + lioTarget + "/" + portalA + ",3260,1"
	l2 := fmt.Sprintf("node.name = %s\nnode.tpgt = 1\niface.iscsi_ifacename = default\niface.transport_name = tcp\niface.initiatorname = %s\n"+
		"node.session.auth.authmethod = CHAP\nnode.session.auth.username = %s\nnode.session.auth.password = %s\nnode.session.scan = auto\n"+
		"node.conn[0].address = %s\nnode.conn[0].port = 3260\n", lioTarget, itsName, lioUser, lioSecret, portalA)
	if err := errors.Join(os.MkdirAll(l, 0o700), os.WriteFile(l+"/default", []byte(l2), 0o600)); err != nil {
		t.Fatal(err)
	}
	sh(t, "iscsiadm -m node -I default -T %s -p %s:3260,1 -l", lioTarget, portalA)
}

// until waits for something that the kernel or iscsid does by itself.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*roottest.Hangs)
	defer cancel()
	for !is() {
		if ctx.Err() != nil {
			t.Fatalf("not within %v: %s", 2*roottest.Hangs, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func mustSession(t *testing.T, i *Initiator) Session {
	t.Helper()
	s, ok, err := i.Session(t.Context(), lioTarget)
	if err != nil || !ok {
		t.Fatalf("session: %+v, %v, %v", s, ok, err)
	}
	return s
}

func scsiDisks(t *testing.T) []string {
	t.Helper()
	disks, err := filepath.Glob("/sys/block/sd*")
	if err != nil {
		t.Fatal(err)
	}
	return disks
}

func isSize(t *testing.T, path string, want int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sectors, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || sectors*512 != want {
		t.Errorf("%s is %d sectors, want %d bytes", path, sectors, want)
	}
}

// writeBlock writes a block past all caches.
func writeBlock(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	_, err = unix.Pwrite(fd, page, 0)
	return errors.Join(err, unix.Munmap(page))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
