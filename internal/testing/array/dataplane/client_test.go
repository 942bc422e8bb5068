package dataplane_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/testing/attachtest"
)

// The client of these tests is what an administrator would use: mount and iscsiadm.

// mountNFS mounts an export until the end of the test.
func mountNFS(t *testing.T, at pools.Attachment) (target string) {
	t.Helper()
	target, err := tryNFS(t, at)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func tryNFS(t *testing.T, at pools.Attachment) (target string, err error) {
	t.Helper()
	target = t.TempDir()
	server, _, _ := strings.Cut(at.Export, ":")
	options := "vers=4.2,addr=" + server + ",clientaddr=" + attachtest.NodeAddress(t)
	if out, err := attachtest.Try("mount", "-i", "-t", "nfs4", "-o", options, at.Export, target); err != nil {
		return "", fmt.Errorf("mount %s: %w: %s", at.Export, err, out)
	}
	t.Cleanup(func() { unmount(t, target) })
	return target, nil
}

func mountDisk(t *testing.T, device string) (target string) {
	t.Helper()
	target = t.TempDir()
	attachtest.Run(t, "mount", device, target)
	t.Cleanup(func() { unmount(t, target) })
	return target
}

// unmount unmounts what is mounted.
func unmount(t *testing.T, target string) {
	t.Helper()
	if err := unix.Unmount(target, 0); err != nil && err != unix.EINVAL {
		t.Errorf("unmount %s: %v", target, err)
	}
}

// session is an initiator that is logged in.
type session struct{ iface, target, portal string }

// login logs a node in until the end of the test.
func login(t *testing.T, a *attachtest.Array, node attachtest.Node, at pools.Attachment) session {
	t.Helper()
	s := define(t, a, node, at)
	attachtest.Run(t, "iscsiadm", s.args("--login")...)
	return s
}

// define makes the initiator's records.
func define(t *testing.T, a *attachtest.Array, node attachtest.Node, at pools.Attachment) session {
	t.Helper()
	s := session{iface: node.Name, target: at.Target, portal: at.Portal}
	attachtest.Run(t, "iscsiadm", "-m", "iface", "-I", s.iface, "-o", "new")
	t.Cleanup(func() {
		// A test that has failed may have left the session.
		_, _ = attachtest.Try("iscsiadm", s.args("--logout")...)
		_, _ = attachtest.Try("iscsiadm", s.args("-o", "delete")...)
		attachtest.Run(t, "iscsiadm", "-m", "iface", "-I", s.iface, "-o", "delete")
	})
	attachtest.Run(t, "iscsiadm", "-m", "iface", "-I", s.iface, "-o", "update", "-n", "iface.initiatorname", "-v", node.IQN)
	attachtest.Run(t, "iscsiadm", s.args("-o", "new")...)
	for _, setting := range [][2]string{
		{"node.session.auth.authmethod", "CHAP"}, {"node.session.auth.username", a.User}, {"node.session.auth.password", a.Secret},
		{"node.session.scan", "manual"},
	} {
		attachtest.Run(t, "iscsiadm", s.args("-o", "update", "-n", setting[0], "-v", setting[1])...)
	}
	return s
}

func (s session) args(more ...string) []string {
	return append([]string{"-m", "node", "-I", s.iface, "-T", s.target, "-p", s.portal}, more...)
}

func (s session) logout(t *testing.T) {
	t.Helper()
	attachtest.Run(t, "iscsiadm", s.args("--logout")...)
}

// host returns the number of the session's SCSI host.
func (s session) host(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("/sys/class/iscsi_host/host*/device/session*/iscsi_session/session*/targetname")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if read(t, name) == s.target && read(t, filepath.Join(filepath.Dir(name), "ifacename")) == s.iface {
			return strings.TrimPrefix(strings.Split(name, "/")[4], "host")
		}
	}
	t.Fatalf("no session of %s to %s", s.iface, s.target)
	return ""
}

// scan asks for one LUN, and returns its disk; empty when there is none.
func (s session) scan(t *testing.T, lun int) (device string) {
	t.Helper()
	host := s.host(t)
	if err := os.WriteFile("/sys/class/scsi_host/host"+host+"/scan", fmt.Appendf(nil, "0 0 %d", lun), 0o200); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/sys/class/scsi_device/%s:0:0:%d/device/block/*", host, lun)
	if dirs, _ := filepath.Glob(filepath.Dir(filepath.Dir(at))); len(dirs) == 0 {
		return ""
	}
	// The disk comes a while after its device.
	attachtest.Eventually(t, "the disk of LUN "+strconv.Itoa(lun), func() bool {
		found, _ := filepath.Glob(at)
		if len(found) == 0 {
			return false
		}
		device = "/dev/" + filepath.Base(found[0])
		_, err := os.Stat(device)
		return err == nil
	})
	return device
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// serial of a disk, as SCSI tells it.
func serial(t *testing.T, device string) string {
	t.Helper()
	page, err := os.ReadFile("/sys/block/" + filepath.Base(device) + "/device/vpd_pg80")
	if err != nil || len(page) < 4 {
		t.Fatalf("%s: %x, %v", device, page, err)
	}
	// Behind a header of four bytes; targets end it with a zero or fill it up with blanks.
	return strings.Trim(string(page[4:]), "\x00 ")
}

// bytesOf returns a disk's size.
func bytesOf(t *testing.T, device string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(read(t, "/sys/block/"+filepath.Base(device)+"/size"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * 512
}

// remove takes a disk away from the kernel, as a node does before a volume is detached.
func remove(t *testing.T, device string) {
	t.Helper()
	if err := os.WriteFile("/sys/block/"+filepath.Base(device)+"/device/delete", []byte("1"), 0o200); err != nil {
		t.Fatal(err)
	}
}

// fill writes a durable file of random bytes, and returns its sum.
func fill(t *testing.T, path string, kib int) [32]byte {
	t.Helper()
	data := make([]byte, kib<<10)
	_, _ = rand.Read(data)
	if err := put(path, data); err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// put writes a file and waits until it is durable.
func put(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

func same(t *testing.T, path string, want [32]byte) {
	t.Helper()
	if got := sum(t, path); !bytes.Equal(got[:], want[:]) {
		t.Errorf("%s: another content, %x instead of %x", path, got[:4], want[:4])
	}
}

// size of a mounted file system, in MiB.
func size(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks) * st.Bsize >> 20
}

// rescan has a disk's size read again.
func rescan(device string) error {
	return os.WriteFile("/sys/block/"+filepath.Base(device)+"/device/rescan", []byte("1"), 0o200)
}
