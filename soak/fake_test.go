package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// fakePrefix begins the program name under which the test binary is a daemon;
// the rest of the name is the daemon's bug.
const fakePrefix = "fake katbox: "

// noBug is an honest daemon.
const noBug = "none"

func TestMain(m *testing.M) {
	if bug, ok := strings.CutPrefix(filepath.Base(os.Args[0]), fakePrefix); ok {
		if err := serveFake(bug, os.Args[1:]); err != nil {
			fmt.Println("fake daemon:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeBinary returns the path of a daemon with the given bug.
func fakeBinary(t *testing.T, bug string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), fakePrefix+bug)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// fake is a driver in a hundred lines. A symlink stands for the bind mount, so
// it needs no rights; a file for each retained volume holds its deadline.
type fake struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	bug      string
	work     string
	lifespan time.Duration

	mu   sync.Mutex
	busy map[string]bool
	// published is how many publishes there were.
	published int
}

// serveFake understands the daemon's command line as far as it needs it.
func serveFake(bug string, args []string) error {
	flags := make(map[string]string)
	for i := 0; i+1 < len(args); i += 2 {
		flags[strings.TrimPrefix(args[i], "--")] = args[i+1]
	}
	if bug == "stillborn" {
		return errors.New("it will not start")
	}
	f := &fake{bug: bug, work: flags["workdir"], busy: make(map[string]bool)}
	var err error
	if f.lifespan, err = time.ParseDuration(flags["afterlifespan"]); err != nil {
		return err
	}
	if err := f.recover(); err != nil {
		return err
	}
	socket := strings.TrimPrefix(flags["endpoint"], "unix://")
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, f)
	csi.RegisterNodeServer(server, f)
	go func() {
		if err := server.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	for {
		select {
		case <-terminated:
			if bug == "ends badly" {
				return errors.New("it ends badly")
			}
			return nil
		case <-time.After(20 * time.Millisecond):
			f.expire()
		}
	}
}

func (f *fake) record(id string) string { return filepath.Join(f.work, ".records", id) }

func (f *fake) recover() error {
	if err := os.MkdirAll(filepath.Join(f.work, ".records"), 0o755); err != nil {
		return err
	}
	if f.bug != "forgets deadlines" {
		return nil
	}
	records, err := filepath.Glob(f.record("*"))
	for _, record := range records {
		err = errors.Join(err, f.retain(filepath.Base(record), time.Hour))
	}
	return err
}

// retain writes a volume's deadline durably enough for a test.
func (f *fake) retain(id string, lifespan time.Duration) error {
	deadline := strconv.FormatInt(time.Now().Add(lifespan).UnixNano(), 10)
	temporary := f.record("." + id)
	if err := os.WriteFile(temporary, []byte(deadline), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, f.record(id))
}

func (f *fake) expire() {
	volumes, _ := filepath.Glob(filepath.Join(f.work, "*-*", "csi-*"))
	for _, data := range volumes {
		text, _ := os.ReadFile(f.record(filepath.Base(data)))
		deadline, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || time.Now().UnixNano() < deadline {
			continue
		}
		trash := filepath.Join(f.work, ".trash", filepath.Base(data))
		if errors.Join(os.MkdirAll(filepath.Dir(trash), 0o755), os.Rename(data, trash)) != nil {
			continue // the next round tries again
		}
		os.Remove(filepath.Dir(data))
		if f.bug != "keeps trash" {
			os.RemoveAll(trash)
		}
	}
}

// enter lets one call at a time work on a volume.
func (f *fake) enter(id string) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[id] {
		return nil, status.Error(codes.Aborted, "busy")
	}
	f.busy[id] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.busy, id)
	}, nil
}

func (f *fake) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (f *fake) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (f *fake) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	leave, err := f.enter(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer leave()
	f.mu.Lock()
	f.published++
	crash := f.bug == "crashes" && f.published == 10
	f.mu.Unlock()
	if crash {
		panic("the tenth publish is one too many")
	}
	if _, err := os.Lstat(r.GetTargetPath()); err == nil && f.bug == "refuses repeats" {
		return nil, status.Error(codes.AlreadyExists, "there is one already")
	}
	data := filepath.Join(f.work, r.GetVolumeContext()["csi.storage.k8s.io/pod.uid"], r.GetVolumeId())
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if f.bug == "mounts nothing" {
		data = filepath.Dir(data)
	}
	if err := os.Symlink(data, r.GetTargetPath()); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (f *fake) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	leave, err := f.enter(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer leave()
	id := r.GetVolumeId()
	if _, err := os.Stat(f.record(id)); err == nil && f.bug != "prolongs" {
		return &csi.NodeUnpublishVolumeResponse{}, nil
	}
	data, _ := os.Readlink(r.GetTargetPath())
	lifespan := f.lifespan
	switch f.bug {
	case "hurries":
		lifespan /= 2
	case "prolongs":
		lifespan *= 20
	case "loses a file":
		os.Remove(filepath.Join(data, markerName))
	case "is never ready to unpublish":
		return nil, status.Error(codes.Unavailable, "come back later")
	}
	if err := f.retain(id, lifespan); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if f.bug != "leaves targets" {
		os.Remove(r.GetTargetPath())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
