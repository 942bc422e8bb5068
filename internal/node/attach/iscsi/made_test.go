package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/attach"
)

// made is a node that is made up: a tree like sysfs, a host's root directory, and an iscsiadm.
type made struct {
	t *testing.T
	// dir has sys, dev, proc and root.
	dir string
	i   *Initiator
	// array is what the array has: a volume's serial number for each LUN.
	array map[int]string
	// names are the WWIDs of those that have any.
	names map[int]string
	// mute: the kernel does not get the serial numbers of disks.
	mute bool
	// commands are what was run; status gives a command's exit status.
	commands [][]string
	status   func(args []string) int
	iqn      string
}

const (
	aTarget = "iqn.2026-11.io.katbox.test:array"
	aName   = "iqn.2026-11.io.katbox:c1:node-1"
	aSecret = "top secret"
)

func makeUp(t *testing.T) *made {
	t.Helper()
	m := &made{t: t, dir: t.TempDir(), array: make(map[int]string), names: make(map[int]string), iqn: aName}
	i, err := New(Config{
		Root: m.path("root"), Interface: "katbox", Sysfs: m.path("sys"), Proc: m.path("proc"),
		IQN: func(context.Context) (string, error) { return m.iqn, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	i.dev, i.pause, i.patience = m.path("dev"), time.Millisecond, 20*time.Millisecond
	i.run = m.run
	i.inquire = func(path string) (attach.Identity, error) {
		lun, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "sd"))
		if err != nil {
			return attach.Identity{}, err
		}
		if m.array[lun] == "" {
			return attach.Identity{}, fmt.Errorf("INQUIRY: %w", kernel.ErrSCSI)
		}
		return attach.Identity{Serial: m.array[lun], WWID: m.names[lun]}, nil
	}
	m.i = i
	kernel.Inject(t, func(call, path string) error {
		switch filepath.Base(path) {
		case "scan":
			for lun, serial := range m.array {
				m.disk(1, 1, lun, serial)
			}
		case "delete":
			m.must(os.RemoveAll(filepath.Dir(path)))
			return unix.ENODEV // as the kernel may say
		}
		return nil
	})
	m.file("", "sys/class/iscsi_session/.keep")
	m.must(os.Remove(m.path("sys/class/iscsi_session/.keep")))
	return m
}

func (m *made) path(names ...string) string {
	return filepath.Join(append([]string{m.dir}, names...)...)
}

func (m *made) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *made) file(content string, names ...string) {
	m.t.Helper()
	path := m.path(names...)
	m.must(errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)))
}

func (m *made) link(to string, names ...string) {
	m.t.Helper()
	path := m.path(names...)
	m.must(os.MkdirAll(filepath.Dir(path), 0o755))
	if err := os.Symlink(m.path(to), path); err != nil && !errors.Is(err, fs.ErrExist) {
		m.t.Fatal(err)
	}
}

// session makes a session with a SCSI host of the same number.
func (m *made) session(id int, iface, target, initiator, state string) {
	m.t.Helper()
	name := "session" + strconv.Itoa(id)
	device := fmt.Sprintf("sys/devices/platform/host%d/%s", id, name)
	class := device + "/iscsi_session/" + name
	for attribute, value := range map[string]string{
		"ifacename": iface, "targetname": target, "initiatorname": initiator, "state": state, "password": aSecret,
	} {
		m.file(value+"\n", class, attribute)
	}
	connection := fmt.Sprintf("connection%d:0", id)
	m.file("10.0.0.1\n", device, connection, "iscsi_connection", connection, "persistent_address")
	m.file("3260\n", device, connection, "iscsi_connection", connection, "persistent_port")
	m.file("", fmt.Sprintf("sys/devices/platform/host%d/scsi_host/host%d/scan", id, id))
	m.link(device, class, "device")
	m.link(class, "sys/class/iscsi_session", name)
	m.link(device+"/"+connection+"/iscsi_connection/"+connection, "sys/class/iscsi_connection", connection)
	m.link(fmt.Sprintf("sys/devices/platform/host%d/scsi_host/host%d", id, id), fmt.Sprintf("sys/class/scsi_host/host%d", id))
}

func (m *made) state(id int, state string) {
	m.file(state+"\n", fmt.Sprintf("sys/class/iscsi_session/session%d/state", id))
}

func (m *made) gone(id int) {
	m.must(errors.Join(os.RemoveAll(m.path(fmt.Sprintf("sys/devices/platform/host%d", id))),
		os.Remove(m.path(fmt.Sprintf("sys/class/iscsi_session/session%d", id)))))
}

func (m *made) diskDir(session, lun int) string {
	return fmt.Sprintf("sys/devices/platform/host%d/session%d/target%d:0:0/%d:0:0:%d", session, session, session, session, lun)
}

// disk makes a LUN of a session a disk, if it is none yet.
func (m *made) disk(session, _, lun int, serial string) {
	m.t.Helper()
	dir := m.diskDir(session, lun)
	if _, err := os.Stat(m.path(dir)); err == nil {
		return
	}
	name := "sd" + strconv.Itoa(lun)
	if !m.mute {
		m.file(page(serial), dir, "vpd_pg80")
		if name, ok := strings.CutPrefix(m.names[lun], "t10."); ok {
			m.file(namePage83(name), dir, "vpd_pg83")
		}
	}
	m.file("", dir, "delete")
	m.file("", dir, "rescan")
	m.file("running\n", dir, "state")
	m.file(fmt.Sprintf("250:%d\n", session*100+lun), dir, "block", name, "dev")
	m.file("2048\n", dir, "block", name, "size")
	m.link(dir+"/block/"+name, fmt.Sprintf("sys/dev/block/250:%d", session*100+lun))
	m.file("", "dev", name)
}

// namePage83 is VPD page 0x83 with a name of T10's kind, and one that is the port's.
func namePage83(name string) string {
	names := "\x51\x94\x00\x04\x00\x00\x00\x01" + "\x02\x01\x00" + string(rune(len(name))) + name
	return "\x00\x83\x00" + string(rune(len(names))) + names
}

// page is VPD page 0x80, filled up as LIO does it.
func page(serial string) string {
	return "\x00\x80\x00" + string(rune(len(serial)+1)) + serial + "\x00"
}

// run is iscsiadm.
func (m *made) run(_ context.Context, args ...string) (string, error) {
	m.commands = append(m.commands, args)
	if m.status != nil {
		if status := m.status(args); status != 0 {
			err := exec.Command("sh", "-c", "exit "+strconv.Itoa(status)).Run()
			return "", fmt.Errorf("iscsiadm: %w: what it wrote", err)
		}
	}
	switch {
	case slices.Contains(args, "iface"):
		m.file("# BEGIN RECORD\niface.iscsi_ifacename = katbox\niface.transport_name = tcp\n", "root/etc/iscsi/ifaces/katbox")
	case slices.Contains(args, "--login"):
		m.session(1, "katbox", aTarget, m.iqn, "LOGGED_IN")
	case slices.Contains(args, "--logout"):
		id, err := strconv.Atoi(args[slices.Index(args, "-r")+1])
		m.must(err)
		m.gone(id)
	}
	return "", nil
}

// ran is the commands except the first one of each process, which finds the records.
func (m *made) ran() (commands []string) {
	for _, command := range m.commands {
		if !slices.Contains(command, "iface") {
			commands = append(commands, strings.Join(command, " "))
		}
	}
	return commands
}
