package kubelet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// kubelet behaves like the kubelet's plugin manager: it registers each socket in its
// directory, at its start and when one appears. After a refusal it asks again only when
// there is another socket. A watch ends with its directory.
type kubelet struct {
	dir string
	// register decides about a plugin.
	register func(*registerapi.PluginInfo) error
	events   chan event
	// known are the sockets whose plugins it has asked.
	known map[string]bool
}

// event is the outcome for a plugin.
type event struct {
	what string
	info *registerapi.PluginInfo
}

// startKubelet starts a kubelet, which ends with the returned function, or when
// the test does.
func startKubelet(t *testing.T, dir string, register func(*registerapi.PluginInfo) error) (k *kubelet, stop func()) {
	t.Helper()
	k = &kubelet{dir: dir, register: register, events: make(chan event, 100), known: map[string]bool{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	changes := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE); err != nil {
		t.Fatal(err)
	}
	// A socket that the test opens from now on is found by the watch alone, so it is asked once.
	there, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.watch(ctx, there, changes)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := changes.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	t.Cleanup(stop)
	return k, stop
}

// watch handles the sockets that are there and then the changes, until changes are closed.
func (k *kubelet) watch(ctx context.Context, there []string, changes *os.File) {
	for _, path := range there {
		k.appeared(ctx, path)
	}
	buffer := make([]byte, 64*1024)
	for {
		n, err := changes.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) > 0; {
			// wd, mask, cookie, the length of the name, and the name.
			mask, length := binary.NativeEndian.Uint32(rest[4:]), binary.NativeEndian.Uint32(rest[12:])
			name := string(bytes.TrimRight(rest[16:16+length], "\x00"))
			rest = rest[16+length:]
			switch path := filepath.Join(k.dir, name); {
			case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
				k.appeared(ctx, path)
			case mask&unix.IN_DELETE != 0:
				k.vanished(path)
			}
		}
	}
}

func (k *kubelet) vanished(path string) {
	if k.known[path] {
		delete(k.known, path)
		k.events <- event{what: "unregistered"}
	}
}

func (k *kubelet) appeared(ctx context.Context, path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket || strings.HasPrefix(info.Name(), ".") {
		return
	}
	k.vanished(path)
	// While no process answers it tries again.
	for ctx.Err() == nil && !k.known[path] {
		if _, err := os.Stat(path); err != nil {
			return
		}
		k.known[path] = k.add(ctx, path)
	}
}

// add asks a plugin for its name, registers it and reports that to it.
func (k *kubelet) add(ctx context.Context, path string) (asked bool) {
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	defer conn.Close()
	client := registerapi.NewRegistrationClient(conn)
	info, err := client.GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		return false
	}
	status := &registerapi.RegistrationStatus{PluginRegistered: true}
	what := "registered"
	if err := k.register(info); err != nil {
		status = &registerapi.RegistrationStatus{Error: err.Error()}
		what = "refused"
	}
	// After a refusal the answer makes no difference.
	if _, err := client.NotifyRegistrationStatus(ctx, status); err != nil && status.PluginRegistered {
		what = "not told"
	}
	k.events <- event{what: what, info: info}
	return true
}

// want waits for the next events.
func (k *kubelet) want(t *testing.T, whats ...string) event {
	t.Helper()
	var got event
	for _, what := range whats {
		select {
		case got = <-k.events:
		case <-time.After(time.Minute):
			t.Fatalf("not %s within a minute", what)
		}
		if got.what != what {
			t.Fatalf("%s, want %s", got.what, what)
		}
	}
	return got
}

func accept(*registerapi.PluginInfo) error { return nil }

// refuseTimes refuses a plugin n times.
func refuseTimes(n int) func(*registerapi.PluginInfo) error {
	return func(*registerapi.PluginInfo) error {
		if n--; n < 0 {
			return nil
		}
		return errors.New("CSINode is not there yet")
	}
}
