package iscsi

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	iqn := func(context.Context) (string, error) { return "", nil }
	for _, c := range []Config{{IQN: iqn}, {Interface: "default", IQN: iqn}, {Interface: "a/b", IQN: iqn}, {Interface: "katbox"}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	i, err := New(Config{Interface: "katbox", IQN: iqn})
	if err != nil || i.sysfs != "/sys" || i.proc != "/proc" {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestSessions(t *testing.T) {
	m := makeUp(t)
	ctx := t.Context()
	if _, ok, err := m.i.Session(ctx, aTarget); ok || err != nil {
		t.Errorf("without any: %v, %v", ok, err)
	}
	m.session(1, "katbox", aTarget, aName, "FAILED")
	m.session(2, "default", aTarget, aName, "LOGGED_IN")
	m.session(3, "katbox", aTarget+"2", aName, "LOGGED_IN")
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	m.i.now = func() time.Time { return now }
	want := Session{ID: 1, Host: 1, Target: aTarget, Address: "10.0.0.1:3260", Initiator: aName, Since: now}
	if s, ok, err := m.i.Session(ctx, aTarget); s != want || !ok || err != nil {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
	now = now.Add(time.Minute)
	all, err := m.i.Sessions(ctx)
	if err != nil || len(all) != 2 || all[0] != want || all[1].ID != 3 || !all[1].LoggedIn || !all[1].Since.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	m.state(1, "LOGGED_IN")
	if s, _, _ := m.i.Session(ctx, aTarget); !s.LoggedIn || !s.Since.IsZero() {
		t.Errorf("%+v", s)
	}
	m.state(1, "FREE")
	if s, _, _ := m.i.Session(ctx, aTarget); s.LoggedIn || !s.Since.Equal(now) {
		t.Errorf("%+v: it has been down since %v", s, now)
	}
	// The one that is logged in, else the newest.
	m.session(4, "katbox", aTarget, aName, "FAILED")
	if s, _, _ := m.i.Session(ctx, aTarget); s.ID != 4 {
		t.Errorf("%+v", s)
	}
	m.state(1, "LOGGED_IN")
	if s, _, _ := m.i.Session(ctx, aTarget); s.ID != 1 {
		t.Errorf("%+v", s)
	}
	m.gone(1)
	m.gone(4)
	if _, ok, err := m.i.Session(ctx, aTarget); ok || err != nil || len(m.i.down) != 0 {
		t.Errorf("after they ended: %v, %v, %v", ok, err, m.i.down)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.i.Sessions(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSessionIsReadAnew: what is known of a session holds while it is the same one and carries I/O.
func TestSessionIsReadAnew(t *testing.T) {
	m := makeUp(t)
	look := func(want Session) {
		t.Helper()
		want.Since = time.Time{}
		s, _, err := m.i.Session(t.Context(), want.Target)
		if s.Since = (time.Time{}); s != want || err != nil {
			t.Errorf("%+v, %v, want %+v", s, err, want)
		}
	}
	s := Session{ID: 1, Host: 1, Target: aTarget, Address: "10.0.0.1:3260", Initiator: aName, LoggedIn: true}
	m.session(1, "katbox", aTarget, aName, "LOGGED_IN")
	look(s)
	m.state(1, "FAILED")
	m.file("10.0.0.2\n", "sys/class/iscsi_connection/connection1:0/persistent_address")
	s.Address, s.LoggedIn = "10.0.0.2:3260", false
	look(s)
	m.state(1, "LOGGED_IN")
	m.file("10.0.0.3\n", "sys/class/iscsi_connection/connection1:0/persistent_address")
	s.Address, s.LoggedIn = "10.0.0.3:3260", true
	look(s)
	// Another one gets its number.
	m.must(os.Rename(m.path("sys/devices/platform/host1"), m.path("old")))
	m.session(1, "katbox", aTarget+"2", aName, "LOGGED_IN")
	s.Target, s.Address = aTarget+"2", "10.0.0.1:3260"
	look(s)
	m.gone(1)
	if _, ok, err := m.i.Session(t.Context(), s.Target); ok || err != nil || len(m.i.seen) != 0 {
		t.Errorf("when it is gone: %t, %v, %v is still known", ok, err, m.i.seen)
	}
}

func TestSessionsOfABadTree(t *testing.T) {
	for _, tt := range []struct{ file, content, says string }{
		{"sys/class/iscsi_session/sessionX/ifacename", "katbox\n", "sessionX"},
		{"sys/class/iscsi_session/session01/ifacename", "katbox\n", "session01"},
		{"sys/class/iscsi_session/session99999999999999999999/ifacename", "katbox\n", "no session and a number"},
	} {
		m := makeUp(t)
		m.file(tt.content, tt.file)
		if _, err := m.i.Sessions(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.file, err)
		}
	}
	// What is being made or removed is not there.
	for _, missing := range []string{"targetname", "state", "device", "initiatorname", "ifacename"} {
		m := makeUp(t)
		m.session(1, "katbox", aTarget, aName, "LOGGED_IN")
		m.must(os.RemoveAll(m.path("sys/class/iscsi_session/session1", missing)))
		if all, err := m.i.Sessions(t.Context()); len(all) != 0 || err != nil {
			t.Errorf("without %s: %+v, %v", missing, all, err)
		}
	}
	m := makeUp(t)
	m.session(1, "katbox", aTarget, aName, "FAILED")
	m.must(os.RemoveAll(m.path("sys/class/iscsi_connection/connection1:0")))
	if all, err := m.i.Sessions(t.Context()); len(all) != 1 || err != nil || all[0].Address != "" {
		t.Errorf("without a connection: %+v, %v", all, err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		page("volume-1"):                     "volume-1",
		"\x00\x80\x00\x0a volume-1 ":         "volume-1",
		"\x00\x80\x00\x02ab\x00\x00\x00tail": "ab",
		"":                                   "",
		"\x00\x80\x00":                       "",
		"\x00\x83\x00\x01a":                  "",
		"\x00\x80\xff\xffa":                  "",
		"\x00\x80\x00\x02\x00 ":              "",
		"\x00\x80\x00\x03a\nb":               "",
		"\x00\x80\x00\x02\xc3\xa4":           "",
	} {
		if got, err := parseSerial([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if a, err := parseAddress("1:0:2:300"); err != nil || a != (address{1, 0, 2, 300}) {
		t.Errorf("%+v, %v", a, err)
	}
	for _, text := range []string{"", ":::", "1:0:0", "1:0:0:0:0", "1:0:0:x", "1:0:0:-1", "1:0:0:99999999999", "1:0:0:01", "a b"} {
		if a, err := parseAddress(text); err == nil {
			t.Errorf("%q: %+v", text, a)
		}
	}
	for _, text := range []string{"", "8", "8:", ":1", "8:1:2", "8:-1", "8:99999999999"} {
		if n, err := parseNumber(text); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{page("volume-1"), "1:0:0:1", "8:16", "session12", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if serial, err := parseSerial([]byte(text)); err == nil && (serial == "" || !strings.Contains(text, serial)) {
			t.Errorf("serial %q of %q", serial, text)
		}
		if a, err := parseAddress(text); err == nil && slices.Min([]int{a.host, a.channel, a.target, a.lun}) < 0 {
			t.Errorf("address %+v of %q", a, text)
		}
		_, _ = parseNumber(text)
		if name, port, err := splitAddress(text); err == nil && (name == "" || port == "" || strings.ContainsAny(name+port, "/ \n")) {
			t.Errorf("host %q and port %q of %q", name, port, text)
		}
	})
}
