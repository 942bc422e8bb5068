package iscsi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/host"
)

var (
	aPortal = Portal{Target: aTarget, Address: "10.0.0.1"}
	aCHAP   = CHAP{User: "user", Secret: aSecret}
)

const aRecord = "root/etc/iscsi/nodes/" + aTarget + "/10.0.0.1,3260,1/katbox"

func TestLogin(t *testing.T) {
	m := makeUp(t)
	stranger := strings.TrimSuffix(aRecord, "katbox") + "default"
	m.file("a stranger's", stranger)
	for range 2 {
		if err := m.i.Login(t.Context(), aPortal, aCHAP); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"-m node -I katbox -T " + aTarget + " -p 10.0.0.1:3260,1 --login"}
	if ran := m.ran(); !slices.Equal(ran, want) {
		t.Errorf("%q", ran)
	}
	if strings.Contains(fmt.Sprint(m.commands), aSecret) {
		t.Errorf("the secret is in %q", m.commands)
	}
	record, err := os.ReadFile(m.path(aRecord))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"node.name = " + aTarget, "iface.initiatorname = " + aName, "node.startup = manual", "node.conn[0].startup = manual",
		"node.session.scan = manual", "node.session.timeo.replacement_timeout = 300", "node.session.auth.authmethod = CHAP",
		"node.session.auth.username = user", "node.session.auth.password = " + aSecret, "node.conn[0].address = 10.0.0.1",
	} {
		if !strings.Contains(string(record), "\n"+line+"\n") {
			t.Errorf("no line %q in %s", line, record)
		}
	}
	iface, err := os.ReadFile(m.path("root/etc/iscsi/ifaces/katbox"))
	if err != nil || !strings.Contains(string(iface), "iface.initiatorname = "+aName+"\n") ||
		strings.Contains(string(iface), "transport_name") {
		t.Errorf("%s, %v", iface, err)
	}
	for _, path := range []string{aRecord, "root/etc/iscsi/ifaces/katbox"} {
		if info, err := os.Stat(m.path(path)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if files, err := os.ReadDir(m.path(strings.TrimSuffix(aRecord, "/katbox"))); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestLoginWithoutCHAP(t *testing.T) {
	m := makeUp(t)
	if err := m.i.Login(t.Context(), Portal{Target: aTarget, Address: "[fd00::1]:3261"}, CHAP{}); err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(m.path("root/etc/iscsi/nodes/" + aTarget + "/fd00::1,3261,1/katbox"))
	if err != nil || !strings.Contains(string(record), "authmethod = None\n") || strings.Contains(string(record), "password") ||
		!strings.Contains(string(record), "address = fd00::1\n") {
		t.Errorf("%s, %v", record, err)
	}
	if ran := m.ran(); len(ran) != 1 || !strings.Contains(ran[0], "-p [fd00::1]:3261,1 ") {
		t.Errorf("%q", ran)
	}
}

func TestLoginRefuses(t *testing.T) {
	for name, change := range map[string]func(*Portal, *CHAP, *made){
		"no target":          func(p *Portal, _ *CHAP, _ *made) { p.Target = "" },
		"target with a path": func(p *Portal, _ *CHAP, _ *made) { p.Target = "iqn.2026-11.x/../../etc" },
		"no address":         func(p *Portal, _ *CHAP, _ *made) { p.Address = "" },
		"address with path":  func(p *Portal, _ *CHAP, _ *made) { p.Address = "../x" },
		"port 0":             func(p *Portal, _ *CHAP, _ *made) { p.Address = "10.0.0.1:0" },
		"port of letters":    func(p *Portal, _ *CHAP, _ *made) { p.Address = "10.0.0.1:http" },
		"secret of lines":    func(_ *Portal, c *CHAP, _ *made) { c.Secret = aSecret + "\nnode.startup = automatic" },
		"secret with blank":  func(_ *Portal, c *CHAP, _ *made) { c.Secret = aSecret + " " },
		"long secret":        func(_ *Portal, c *CHAP, _ *made) { c.Secret = strings.Repeat(aSecret, 30) },
		"no secret":          func(_ *Portal, c *CHAP, _ *made) { c.Secret = "" },
		"no user":            func(_ *Portal, c *CHAP, _ *made) { c.User = "" },
		"bad initiator name": func(_ *Portal, _ *CHAP, m *made) { m.iqn = "node 1" },
	} {
		m := makeUp(t)
		p, c := aPortal, aCHAP
		change(&p, &c, m)
		err := m.i.Login(t.Context(), p, c)
		if !errors.Is(err, volume.ErrInvalid) || len(m.commands) > 0 || strings.Contains(err.Error(), aSecret) {
			t.Errorf("%s: %v, %v", name, err, m.commands)
		}
	}
	m := makeUp(t)
	unknown := errors.New("the API server does not answer")
	m.i.config.IQN = func(context.Context) (string, error) { return "", unknown }
	if err := m.i.Login(t.Context(), aPortal, aCHAP); !errors.Is(err, unknown) {
		t.Error(err)
	}
}

func TestLoginFails(t *testing.T) {
	for status, is := range map[int]error{
		1: volume.ErrUnavailable, 2: volume.ErrUnavailable, 8: volume.ErrUnavailable, 20: volume.ErrUnavailable, 24: ErrAuth,
		28: volume.ErrBusy, 99: volume.ErrUnavailable,
	} {
		m := makeUp(t)
		m.status = func(args []string) int {
			if slices.Contains(args, "--login") {
				return status
			}
			return 0
		}
		err := m.i.Login(t.Context(), aPortal, aCHAP)
		if !errors.Is(err, is) || strings.Contains(err.Error(), aSecret) {
			t.Errorf("status %d: %v", status, err)
			continue
		}
		for _, part := range []string{aTarget, "10.0.0.1", fmt.Sprintf("exit status %d", status), "what it wrote"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("status %d: no %q in %v", status, part, err)
			}
		}
	}
	for status, f := range failures {
		if f.is == nil || f.text == "" {
			t.Errorf("status %d means nothing", status)
		}
	}
	m := makeUp(t)
	m.i.run = func(context.Context, ...string) (string, error) { return "", host.ErrNoProgram }
	if err := m.i.Login(t.Context(), aPortal, aCHAP); !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(), "open-iscsi") {
		t.Error(err)
	}
	// The session exists, says iscsiadm; the kernel knows better.
	m = makeUp(t)
	m.status = func(args []string) int {
		if slices.Contains(args, "--login") {
			return sessionExists
		}
		return 0
	}
	if err := m.i.Login(t.Context(), aPortal, aCHAP); !errors.Is(err, volume.ErrUnavailable) {
		t.Error(err)
	}
}

// TestLoginBeside: what becomes of a session that is there.
func TestLoginBeside(t *testing.T) {
	const other = "iqn.2026-11.io.katbox:c1:renamed"
	for _, tt := range []struct {
		name            string
		state, iqn      string
		address         string
		used, cannotEnd bool
		is              error
		logout, login   bool
	}{
		{name: "up", state: "LOGGED_IN"},
		{name: "up at another address", state: "LOGGED_IN", address: "10.0.0.2"},
		{name: "up with another name", state: "LOGGED_IN", iqn: other, logout: true, login: true},
		{name: "up with another name, used", state: "LOGGED_IN", iqn: other, used: true, is: volume.ErrBusy},
		{name: "up with another name, stays", state: "LOGGED_IN", iqn: other, cannotEnd: true, logout: true, is: volume.ErrUnavailable},
		{name: "down", state: "FAILED", logout: true, login: true},
		{name: "down and used", state: "FAILED", used: true, is: volume.ErrUnavailable},
		{name: "down and stays", state: "FAILED", cannotEnd: true, logout: true, is: volume.ErrUnavailable},
		{name: "down and used, another address", state: "FAILED", address: "10.0.0.2", used: true, login: true},
		{name: "down and stays, another address", state: "FAILED", address: "10.0.0.2", cannotEnd: true, logout: true, login: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := makeUp(t)
			m.session(7, "katbox", aTarget, aName, tt.state)
			m.session(8, "default", aTarget, aName, tt.state)
			m.disk(7, 7, 1, "volume-1")
			if tt.used {
				m.file("", m.diskDir(7, 1), "block/sd1/holders/dm-3")
			}
			if tt.iqn != "" {
				m.iqn = tt.iqn
			}
			m.status = func(args []string) int {
				if tt.cannotEnd && slices.Contains(args, "--logout") {
					return 32
				}
				return 0
			}
			p := aPortal
			if tt.address != "" {
				p.Address = tt.address
			}
			if err := m.i.Login(t.Context(), p, aCHAP); !errors.Is(err, tt.is) {
				t.Errorf("%v, want %v", err, tt.is)
			} else if tt.used && err != nil && !strings.Contains(err.Error(), "dm-3") && !strings.Contains(err.Error(), "since") {
				t.Errorf("%v does not say why", err)
			}
			var want []string
			if tt.logout {
				want = append(want, "-m session -r 7 --logout")
			}
			if tt.login {
				want = append(want, "-m node -I katbox -T "+aTarget+" -p "+p.Address+":3260,1 --login")
			}
			if ran := m.ran(); !slices.Equal(ran, want) {
				t.Errorf("%q, want %q", ran, want)
			}
			if _, err := os.Stat(m.path("sys/class/iscsi_session/session8")); err != nil {
				t.Error("the stranger's session: ", err)
			}
		})
	}
}

func TestLogoutAndForget(t *testing.T) {
	m := makeUp(t)
	ctx := t.Context()
	if err := errors.Join(m.i.Logout(ctx, aTarget), m.i.Forget(ctx, aTarget)); err != nil || len(m.commands) > 0 {
		t.Errorf("without anything: %v, %q", err, m.commands)
	}
	stranger := strings.TrimSuffix(aRecord, "katbox") + "default"
	m.file("a stranger's", stranger)
	m.session(2, "default", aTarget, aName, "LOGGED_IN")
	if err := m.i.Login(ctx, aPortal, aCHAP); err != nil {
		t.Fatal(err)
	}
	m.disk(1, 1, 3, "volume-3")
	if err := m.i.Logout(ctx, aTarget); !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), "volume-3") {
		t.Error(err)
	}
	if err := m.i.Forget(ctx, aTarget); !errors.Is(err, volume.ErrBusy) {
		t.Error(err)
	}
	m.state(1, "FAILED")
	m.file("", m.diskDir(1, 3), "block/sd3/sd31/holders/md0")
	m.file("250:900\n", m.diskDir(1, 3), "block/sd3/sd31/dev")
	if err := m.i.Logout(ctx, aTarget); !errors.Is(err, volume.ErrBusy) || !strings.Contains(err.Error(), "md0") {
		t.Error(err)
	}
	m.must(os.RemoveAll(m.path(m.diskDir(1, 3), "block/sd3/sd31")))
	if err := errors.Join(m.i.Logout(ctx, aTarget), m.i.Forget(ctx, aTarget), m.i.Forget(ctx, aTarget)); err != nil {
		t.Error(err)
	}
	if ran := m.ran(); len(ran) != 2 || ran[1] != "-m session -r 1 --logout" {
		t.Errorf("%q", ran)
	}
	for path, want := range map[string]bool{
		aRecord: false, "root/etc/iscsi/ifaces/katbox": false, stranger: true, "sys/class/iscsi_session/session2": true,
	} {
		if exists(m.path(path)) != want {
			t.Errorf("%s exists: %v", path, !want)
		}
	}
	if err := m.i.Forget(ctx, "../.."); !errors.Is(err, volume.ErrInvalid) {
		t.Error(err)
	}
}

// TestForgetKeepsTheInterface while another target needs it.
func TestForgetKeepsTheInterface(t *testing.T) {
	m := makeUp(t)
	ctx := t.Context()
	other := strings.Replace(aRecord, aTarget, aTarget+"2", 1)
	if err := m.i.Login(ctx, aPortal, aCHAP); err != nil {
		t.Fatal(err)
	}
	m.file("ours", other)
	if err := errors.Join(m.i.Logout(ctx, aTarget), m.i.Forget(ctx, aTarget)); err != nil {
		t.Error(err)
	}
	if exists(m.path("root/etc/iscsi/nodes", aTarget)) || !exists(m.path(other)) || !exists(m.path("root/etc/iscsi/ifaces/katbox")) {
		t.Error("another target's records were removed, or not all of this one's")
	}
	m.session(5, "katbox", "iqn.2026-11.x:third", aName, "FAILED")
	if err := m.i.Forget(ctx, aTarget+"2"); err != nil || !exists(m.path("root/etc/iscsi/ifaces/katbox")) {
		t.Errorf("with a session to a third target: %v", err)
	}
}

func TestLocate(t *testing.T) {
	for _, dir := range databases {
		m := makeUp(t)
		// Of an older version of the host's system.
		m.file("iface.iscsi_ifacename = katbox\n", "root/etc/iscsi/ifaces/katbox")
		m.i.run = func(context.Context, ...string) (string, error) {
			m.file("iface.transport_name = tcp\n", "root", dir, "ifaces/katbox")
			return "", nil
		}
		if got, err := m.i.locate(t.Context()); err != nil || got != m.path("root", dir) {
			t.Errorf("%s, %v, want %s", got, err, dir)
		}
	}
	m := makeUp(t)
	m.status = func([]string) int { return sessionExists }
	if got, err := m.i.locate(t.Context()); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("no record: %s, %v", got, err)
	}
	m.file("iface.iscsi_ifacename = katbox\n", "root/var/lib/iscsi/ifaces/katbox")
	if got, err := m.i.locate(t.Context()); err != nil || got != m.path("root/var/lib/iscsi") {
		t.Errorf("sessions of an earlier process: %s, %v", got, err)
	}
	m = makeUp(t)
	m.status = func([]string) int { return 6 }
	if _, err := m.i.locate(t.Context()); err == nil {
		t.Error("iscsiadm failed, and its records are known")
	}
}

func TestCHAPIsNotShown(t *testing.T) {
	var texts []string
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(format, aCHAP), fmt.Sprintf(format, &aCHAP), fmt.Sprintf(format, record{CHAP: aCHAP}))
	}
	encoded, err := json.Marshal(aCHAP)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(texts, string(encoded)) {
		if strings.Contains(text, aSecret) || strings.Contains(text, fmt.Sprintf("%x", aSecret)) {
			t.Errorf("%s", text)
		}
	}
}

// TestOneAtATime: a call waits for another one on the same target, as long as its context lets it.
func TestOneAtATime(t *testing.T) {
	m := makeUp(t)
	unlock, err := m.i.targets.lock(t.Context(), aTarget)
	unlockHost, hostErr := m.i.hosts.lock(t.Context(), 1)
	if err := errors.Join(err, hostErr); err != nil {
		t.Fatal(err)
	}
	defer unlockHost()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"login":  func() error { return m.i.Login(ended, aPortal, aCHAP) },
		"logout": func() error { return m.i.Logout(ended, aTarget) },
		"forget": func() error { return m.i.Forget(ended, aTarget) },
		"scan":   func() error { _, err := m.i.Scan(ended, aTarget, 1, Wanted{ID: "x"}); return err },
		"delete": func() error { return m.i.Delete(ended, attach.Device{Host: 1, Target: aTarget}) },
	} {
		if err := call(); !errors.Is(err, volume.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- m.i.Login(t.Context(), aPortal, aCHAP) }()
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStaleLock: an iscsiadm that was killed has left open-iscsi's records locked.
func TestStaleLock(t *testing.T) {
	m := makeUp(t)
	m.file("", "root", recordsLock)
	locked := 0
	m.status = func([]string) int {
		if exists(m.path("root", recordsLock)) {
			locked++
			return 6
		}
		return 0
	}
	if err := m.i.Login(t.Context(), aPortal, aCHAP); !errors.Is(err, volume.ErrUnavailable) || locked != 1 {
		t.Errorf("another iscsiadm has the lock: %v after %d commands", err, locked)
	}
	m.i.now = func() time.Time { return time.Now().Add(2 * staleLock) }
	if err := m.i.Login(t.Context(), aPortal, aCHAP); err != nil || locked != 1 {
		t.Errorf("a stale lock: %v after %d commands", err, locked)
	}
}

// TestHangingDisk: work on a disk of a session that is down hangs. That holds up no login elsewhere.
func TestHangingDisk(t *testing.T) {
	m := makeUp(t)
	m.session(7, "katbox", aTarget, aName, "FAILED")
	unlock, err := m.i.hosts.lock(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := m.i.Login(t.Context(), aPortal, aCHAP); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("at the same address: %v", err)
	}
	if err := m.i.Login(t.Context(), Portal{Target: aTarget, Address: "10.0.0.2"}, aCHAP); err != nil {
		t.Errorf("at another address: %v", err)
	}
	if err := m.i.Logout(t.Context(), aTarget); !errors.Is(err, volume.ErrUnavailable) || exists(m.path("sys/class/iscsi_session/session1")) {
		t.Errorf("logout: %v", err)
	}
	if err := m.i.Login(t.Context(), Portal{Target: aTarget, Address: "10.0.0.2"}, aCHAP); err != nil {
		t.Errorf("again: %v", err)
	}
	s, ok, err := m.i.Session(t.Context(), aTarget)
	if !ok || err != nil || s.ID != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	m.array[5] = "volume-5"
	if _, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-5"}); err != nil {
		t.Errorf("a disk of the session beside it: %v", err)
	}
}
