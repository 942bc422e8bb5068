package kubelet

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/katbox/katbox/internal/lib/retry"
)

const driverName = "katbox.csi.paypal.com"

var quickly = pace{
	look: time.Millisecond, refusals: retry.Backoff{First: time.Millisecond, Longest: 4 * time.Millisecond}, patience: time.Hour,
}

func newConfig(t *testing.T) RegistrarConfig {
	t.Helper()
	// The name of a test would make too long a path.
	dir, err := os.MkdirTemp("", "reg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return RegistrarConfig{Dir: filepath.Join(dir, "plugins_registry"), Name: driverName,
		Endpoint: "/var/lib/kubelet/plugins/katbox/csi.sock", Log: logr.Discard(), Registered: func(is bool) { heard.Store(dir, is) }}
}

// heard is what each registrar has last said, by the directory of its test.
var heard sync.Map

func startRegistrar(t *testing.T, cfg RegistrarConfig, p pace) *Registrar {
	t.Helper()
	r, err := register(cfg, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func wantMissing(t *testing.T, r *Registrar, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := r.Registered()
		if err != nil && strings.Contains(err.Error(), want) {
			if is, _ := heard.Load(filepath.Dir(r.cfg.Dir)); is != false {
				t.Errorf("%s: the registrar says that the driver is registered: %v", want, is)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not registered: %v, want %q", err, want)
		}
	}
}

func wantRegistered(t *testing.T, r *Registrar) {
	t.Helper()
	if err := r.Registered(); err != nil {
		t.Errorf("the kubelet has registered the driver: %v", err)
	}
	if is, _ := heard.Load(filepath.Dir(r.cfg.Dir)); is != true {
		t.Errorf("the registrar says that the driver is not registered: %v", is)
	}
}

func TestRegisters(t *testing.T) {
	cfg := newConfig(t)
	r := startRegistrar(t, cfg, usualPace)
	wantMissing(t, r, "has not registered")
	k, stop := startKubelet(t, cfg.Dir, accept)
	got := k.want(t, "registered").info
	if got.Type != registerapi.CSIPlugin || got.Name != driverName || got.Endpoint != cfg.Endpoint ||
		!slices.Equal(got.SupportedVersions, []string{"1.0.0"}) {
		t.Errorf("the driver says that it is %v", got)
	}
	wantRegistered(t, r)

	// A restarted kubelet finds the socket.
	stop()
	k, _ = startKubelet(t, cfg.Dir, accept)
	k.want(t, "registered")
	wantRegistered(t, r)

	r.Stop()
	k.want(t, "unregistered")
	if entries, err := os.ReadDir(cfg.Dir); err != nil || len(entries) > 0 {
		t.Errorf("the end leaves %v, %v", entries, err)
	}
	wantMissing(t, r, "stopping")
}

// TestAgain: the kubelet asks a driver what it is when it finds a new socket.
func TestAgain(t *testing.T) {
	cfg := newConfig(t)
	k, _ := startKubelet(t, cfg.Dir, accept)
	r := startRegistrar(t, cfg, usualPace)
	k.want(t, "registered")
	for range 3 {
		r.Again()
		k.want(t, "unregistered", "registered")
	}
	wantRegistered(t, r)
	(*Registrar)(nil).Again()
}

// TestRefusal: the kubelet asks again only when there is another socket.
func TestRefusal(t *testing.T) {
	cfg := newConfig(t)
	k, stop := startKubelet(t, cfg.Dir, refuseTimes(1))
	slow := quickly
	slow.refusals = retry.Backoff{First: time.Hour, Longest: time.Hour}
	r := startRegistrar(t, cfg, slow)
	k.want(t, "refused")
	wantMissing(t, r, "CSINode is not there yet")
	r.Stop()
	k.want(t, "unregistered")
	stop()

	k, _ = startKubelet(t, cfg.Dir, refuseTimes(5))
	r = startRegistrar(t, cfg, quickly)
	for range 5 {
		k.want(t, "refused", "unregistered")
	}
	k.want(t, "registered")
	wantRegistered(t, r)
}

// TestRemovedSocketComesBack: with its directory, for a kubelet that starts later. A
// running one has lost its watch then.
func TestRemovedSocketComesBack(t *testing.T) {
	for name, remove := range map[string]func(RegistrarConfig) error{
		"socket": func(c RegistrarConfig) error { return os.Remove(c.path()) },
		"directory": func(c RegistrarConfig) error {
			return errors.Join(os.Rename(c.Dir, c.Dir+".old"), os.RemoveAll(c.Dir+".old"))
		},
		"directory made anew": func(c RegistrarConfig) error {
			// The registrar may be the first to make it.
			return errors.Join(os.Rename(c.Dir, c.Dir+".old"), os.MkdirAll(c.Dir, 0o755), os.RemoveAll(c.Dir+".old"))
		},
		"socket of the dead in its place": func(c RegistrarConfig) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.path() + "x", Net: "unix"})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return errors.Join(l.Close(), os.Rename(c.path()+"x", c.path()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(t)
			k, stop := startKubelet(t, cfg.Dir, accept)
			r := startRegistrar(t, cfg, quickly)
			k.want(t, "registered")
			stop()
			if err := remove(cfg); err != nil {
				t.Fatal(err)
			}
			wantMissing(t, r, "has not registered")
			k, _ = startKubelet(t, cfg.Dir, accept)
			k.want(t, "registered")
			wantRegistered(t, r)
		})
	}
	cfg := newConfig(t)
	k, _ := startKubelet(t, cfg.Dir, accept)
	r := startRegistrar(t, cfg, quickly)
	k.want(t, "registered")
	if err := os.Remove(cfg.path()); err != nil {
		t.Fatal(err)
	}
	k.want(t, "unregistered", "registered")
	wantRegistered(t, r)
}

// TestAnotherTakesThePlace: a socket that another process serves is left alone.
func TestAnotherTakesThePlace(t *testing.T) {
	cfg := newConfig(t)
	r := startRegistrar(t, cfg, quickly)
	// Its name is there in one step.
	other, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.path() + "x", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	other.SetUnlinkOnClose(false)
	if err := os.Rename(cfg.path()+"x", cfg.path()); err != nil {
		t.Fatal(err)
	}
	wantMissing(t, r, "another process serves")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	k, _ := startKubelet(t, cfg.Dir, accept)
	k.want(t, "registered")
	wantRegistered(t, r)
}

func TestRegisterRefuses(t *testing.T) {
	cfg := newConfig(t)
	startRegistrar(t, cfg, usualPace)
	if _, err := Register(cfg); err == nil || !strings.Contains(err.Error(), "another process serves") {
		t.Errorf("a second one: %v, want that another process serves", err)
	}
	for want, change := range map[string]func(*RegistrarConfig){
		`registration directory "plugins" is not an absolute path`:      func(c *RegistrarConfig) { c.Dir = "plugins" },
		`registration socket "/xxx`:                                     func(c *RegistrarConfig) { c.Dir = "/" + strings.Repeat("x", 78) },
		`CSI socket for the kubelet "csi.sock" is not an absolute path`: func(c *RegistrarConfig) { c.Endpoint = "csi.sock" },
		`CSI socket for the kubelet "/xxx`:                              func(c *RegistrarConfig) { c.Endpoint = "/" + strings.Repeat("x", 107) },
	} {
		cfg := cfg
		change(&cfg)
		if _, err := Register(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	cfg.Dir = "/" + strings.Repeat("x", 107-2-len(driverName+"-reg.sock"))
	if err := cfg.CheckDir(); err != nil {
		t.Errorf("the longest path is refused: %v", err)
	}
}

func TestNilRegistrar(t *testing.T) {
	var r *Registrar
	if err := r.Registered(); err != nil {
		t.Error(err)
	}
	r.Stop()
}
