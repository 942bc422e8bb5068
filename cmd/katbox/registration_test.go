package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/soak/testbed"
)

// newRegisteringDaemon is a daemon that registers itself. The kubelet sees its
// CSI socket at another path.
func newRegisteringDaemon(t *testing.T) *daemon {
	t.Helper()
	d := newDaemon(t)
	if err := os.Symlink(d.dir, d.dir+".host"); err != nil {
		t.Fatal(err)
	}
	d.flags = []string{"--registration-dir", filepath.Join(d.dir, "reg"), "--kubelet-registration-path",
		filepath.Join(d.dir+".host", "csi.sock"),
		"--http-endpoint", httpEndpoint()}
	return d
}

func (d *daemon) registrationSocket() string {
	return filepath.Join(d.dir, "reg", "katbox.csi.paypal.com-reg.sock")
}

// register is registerAt for the driver of inline volumes.
func (d *daemon) register(refusal string) {
	d.t.Helper()
	if info := d.registerAt(d.registrationSocket(), refusal); info.Name != "katbox.csi.paypal.com" {
		d.t.Errorf("the daemon says that it is %v", info)
	}
}

// registerAt does what the kubelet does with a registration socket: it asks for the
// driver's name, calls the driver and reports the outcome.
func (d *daemon) registerAt(socket, refusal string) *registerapi.PluginInfo {
	d.t.Helper()
	conn, err := testbed.Dial(socket)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	kubelet := registerapi.NewRegistrationClient(conn)
	info, err := kubelet.GetInfo(d.t.Context(), &registerapi.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		d.t.Fatal(err)
	}
	if info.Type != registerapi.CSIPlugin || len(info.SupportedVersions) != 1 {
		d.t.Errorf("the daemon says that it is %v", info)
	}
	driver, err := testbed.Dial(info.Endpoint)
	if err != nil {
		d.t.Fatal(err)
	}
	defer driver.Close()
	// It is served before the daemon registers: no wait is needed.
	if node, err := csi.NewNodeClient(driver).NodeGetInfo(d.t.Context(), &csi.NodeGetInfoRequest{}); err != nil || node.NodeId != "node-1" {
		d.t.Errorf("the driver behind %s: %v, %v", info.Endpoint, node, err)
	}
	if _, err := kubelet.NotifyRegistrationStatus(d.t.Context(),
		&registerapi.RegistrationStatus{PluginRegistered: refusal == "", Error: refusal}); err != nil {
		d.t.Fatal(err)
	}
	return info
}

// wantRegistered checks what the daemon reports about the registration; a text means that
// it is not registered.
func (d *daemon) wantRegistered(why string) {
	d.t.Helper()
	code, registered := http.StatusOK, 1.
	if why != "" {
		code, registered = http.StatusServiceUnavailable, 0
	}
	d.wantAnswer("/readyz", code, why)
	d.metrics().Want(d.t, "the registration", metricstest.Values{"katbox_registered": registered})
}

// logged reports whether the daemon has written a line with these words.
func (d *daemon) logged(words ...string) bool {
	for line := range strings.Lines(d.stdout.String()) {
		found := 0
		for _, word := range words {
			if strings.Contains(line, word) {
				found++
			}
		}
		if found == len(words) {
			return true
		}
	}
	return false
}

func TestRegistersWithTheKubelet(t *testing.T) {
	d := newRegisteringDaemon(t)
	d.start()
	d.eventually("registering", func() bool {
		_, why := d.get("/readyz")
		return exists(d.registrationSocket()) && strings.Contains(why, "has not registered")
	})
	d.wantRegistered("has not registered")
	d.register("")
	d.wantRegistered("")
	d.register("") // the kubelet was restarted
	d.wantRegistered("")

	second := newDaemon(t, "--registration-dir", filepath.Join(d.dir, "reg"))
	if line := second.fails(); !strings.Contains(line, "another process serves") || !strings.Contains(line, "--registration-dir") {
		t.Errorf("a second driver of that name: %q does not say what is wrong", line)
	}

	d.signal(syscall.SIGKILL)
	if !exists(d.registrationSocket()) {
		t.Fatal("there is no stale socket to take over")
	}
	d.launch()
	d.register("")
	if code := d.signal(syscall.SIGTERM); code != 0 || exists(d.registrationSocket()) || exists(d.layout().Socket) {
		t.Errorf("after SIGTERM: exit code %d, want 0 and no socket left", code)
	}
	if !d.logged(`"registered with the kubelet"`) {
		t.Errorf("the log does not tell of it:\n%s", d.stdout)
	}
}

// refuse refuses to register the daemon, checks that it says so, and returns when the socket was made
// that it refused at. The daemon says so until it makes the socket anew, which is after five seconds at
// first, and after twice as long each time; on a slow machine it may be looked at too late.
func (d *daemon) refuse(why string) time.Time {
	d.t.Helper()
	made := func() time.Time {
		info, err := os.Lstat(d.registrationSocket())
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	d.eventually("a registration socket", func() bool { return !made().IsZero() })
	for {
		refused := made()
		d.register(why)
		code, said := d.get("/readyz")
		registered := d.metrics()["katbox_registered"]
		if !made().Equal(refused) {
			d.eventually("a registration socket", func() bool { return !made().IsZero() })
			continue
		}
		if code != http.StatusServiceUnavailable || !strings.Contains(said, why) || registered != 0 {
			d.t.Errorf("refused because of %q, it answers %d %q, and counts %v as registered", why, code, said, registered)
		}
		return refused
	}
}

// TestRegistrationSocketComesBack: after a refusal, and after it was removed.
func TestRegistrationSocketComesBack(t *testing.T) {
	d := newRegisteringDaemon(t)
	d.launch()
	refused := d.refuse("CSINode is not there yet")
	isAnother := func() bool {
		now, err := os.Lstat(d.registrationSocket())
		return err == nil && !now.ModTime().Equal(refused)
	}
	d.eventually("made anew after the refusal", isAnother)
	d.register("")
	d.wantRegistered("")
	if err := errors.Join(os.Rename(filepath.Join(d.dir, "reg"), filepath.Join(d.dir, "old")),
		os.RemoveAll(filepath.Join(d.dir, "old"))); err != nil {
		t.Fatal(err)
	}
	d.eventually("made anew after it was removed", func() bool {
		_, why := d.get("/readyz")
		return isAnother() && strings.Contains(why, "has not registered")
	})
	d.register("")
	d.signal(syscall.SIGTERM)
	if !d.logged(`"error"`, "CSINode is not there yet") {
		t.Errorf("the log does not have the kubelet's words:\n%s", d.stdout)
	}
}
