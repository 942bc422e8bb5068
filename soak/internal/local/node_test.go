package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/mounttest"
)

const (
	// testClass is the class of the one pool of a test's node, and its UUID; testTotal what it can promise.
	testClass = "p"
	testTotal = 512 * mebi
)

// bug is what a test's node does wrong.
type bug string

// full is no bug: a pool may have no room for any volume.
const full bug = "has no room"

// node is a node with a pool whose volumes are mounts of tmpfs, and at most one bug. It is no second Katbox: it promises, keeps and gives
// back what it is asked for, and no more.
type node struct {
	csi.UnimplementedNodeServer
	dir string
	bug bug

	mu sync.Mutex
	// has are the volumes and snapshots by their kinds and names. promised is what the pool says.
	has      map[string]map[string]*found
	promised int64
	calls    int
}

// startNode starts a node, and returns what a player of it needs.
func startNode(t *testing.T, b bug) Config {
	t.Helper()
	mounttest.Need(t)
	// The path of t.TempDir is too long for a socket.
	dir, err := os.MkdirTemp("", "soak-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.ClearAway(t, dir) })
	n := &node{dir: filepath.Join(dir, "pool"), bug: b, has: map[string]map[string]*found{volumes: {}, snapshots: {}}}
	for _, kind := range []string{volumes, snapshots, "records"} {
		if err := os.MkdirAll(filepath.Join(n.dir, kind), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	server.Config.Protocols = protocols
	server.Start()
	t.Cleanup(server.Close)
	conn, err := (&http.Transport{Protocols: protocols}).NewClientConn(t.Context(), "http", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &Controller{came: make(chan struct{})}
	c.become(conn)

	socket := filepath.Join(dir, "local.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	calls := grpc.NewServer()
	csi.RegisterNodeServer(calls, n)
	go func() { _ = calls.Serve(listener) }()
	t.Cleanup(calls.Stop)
	return Config{Controller: c, Socket: socket, Kubelet: filepath.Join(dir, "kubelet"), Pools: map[string]Backend{testClass: ProjectQuota}}
}

// loses says that each seventh request is carried out, and its answer lost.
func (n *node) loses() bool {
	n.calls++
	return n.calls%7 == 0
}

// serve answers the controller.
func (n *node) serve(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer, err := n.answer(r)
	var f *failure
	switch {
	case n.loses():
		panic(http.ErrAbortHandler)
	case errors.As(err, &f):
		w.WriteHeader(http.StatusConflict)
		answer = f
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		answer = &failure{"Failed", err.Error()}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// body is all that requests have.
type body struct {
	newVolume
	newSize
	newComment
	Volume string `json:"volume"`
}

func (n *node) answer(r *http.Request) (any, error) {
	var b body
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		return nil, err
	}
	path := append(strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/pools"), "/"), "", "", "", "")
	kind, name, what := path[2], path[3], path[4]
	f := n.has[kind][name]
	switch {
	case kind == "":
		is := pool{UUID: testClass, Class: testClass, Path: n.dir, Copies: true, Total: testTotal, Provisioned: n.promised}
		if n.calls == 0 {
			is.UUID, is.Failed = "", "it starts"
		}
		return list[pool]{[]pool{is}}, nil
	case r.Method == http.MethodGet && name == "":
		var all list[found]
		for _, name := range slices.Sorted(maps.Keys(n.has[kind])) {
			all.Items = append(all.Items, *n.has[kind][name])
		}
		return all, nil
	case r.Method == http.MethodPost:
		return n.create(kind, b)
	case r.Method == http.MethodDelete:
		return found{}, n.delete(kind, f)
	case f == nil:
		return nil, &failure{"NotFound", name}
	case what == "size":
		return f, n.grow(f, b.Bytes)
	case what == "comment" && n.bug == "refuses decisions":
		return nil, errors.New("a decision is not taken")
	case what == "comment" && n.bug != "forgets what is retained":
		f.Comment = b.Comment
	}
	return f, nil
}

func (n *node) data(kind, name string) string { return filepath.Join(n.dir, kind, name) }

func (n *node) create(kind string, b body) (*found, error) {
	name := b.Name
	if f := n.has[kind][name]; f != nil {
		return f, nil
	}
	f := &found{Name: name, Size: b.Size, Of: b.Volume, Ready: true}
	from := ""
	switch {
	case kind == snapshots:
		from, f.Size = n.data(volumes, b.Volume), n.has[volumes][b.Volume].Size
	case b.Source.Snapshot != "":
		from = n.data(snapshots, b.Source.Snapshot)
	case b.Source.Volume != "":
		from = n.data(volumes, b.Source.Volume)
	}
	if n.bug == full || n.promised+f.Size > testTotal {
		return nil, &failure{"NoSpace", name}
	}
	if err := os.Mkdir(n.data(kind, name), 0o755); err != nil {
		return nil, err
	}
	if kind == volumes {
		if err := n.mount(name, f.Size, 0); err != nil {
			return nil, err
		}
	}
	if from != "" && (kind == snapshots || n.bug != "copies nothing") && (kind == volumes || n.bug != "takes empty snapshots") {
		if err := os.CopyFS(n.data(kind, name), os.DirFS(from)); err != nil {
			return nil, err
		}
	}
	n.promised += f.Size
	switch n.bug {
	case "promises too much":
		n.promised++
	case "makes larger volumes":
		f.Size += mebi
	case "never completes a snapshot":
		f.Ready = kind == volumes
	case "takes snapshots of another volume":
		if kind == snapshots {
			f.Of = "another"
		}
	}
	n.has[kind][name] = f
	return f, nil
}

// mount gives a volume so much room, and another flag says that it has some already.
func (n *node) mount(name string, size int64, flags uintptr) error {
	switch n.bug {
	case "limits nothing":
		size *= 4
	case "gives too little room":
		size -= 4 * mebi
	}
	return unix.Mount("tmpfs", n.data(volumes, name), "tmpfs", flags, fmt.Sprintf("size=%d", size))
}

func (n *node) grow(f *found, size int64) error {
	switch {
	case size <= f.Size:
		return nil
	case n.promised+size-f.Size > testTotal:
		return &failure{"NoSpace", f.Name}
	}
	n.promised += size - f.Size
	if f.Size = size; n.bug == "forgets growth" {
		forgotten := *f
		forgotten.Size -= growth
		n.promised -= growth
		n.has[volumes][f.Name] = &forgotten
	}
	return nil
}

func (n *node) delete(kind string, f *found) error {
	if f == nil {
		return nil
	}
	switch n.bug {
	case "forgets deletions":
		return nil
	case "leaves records":
		if err := os.WriteFile(filepath.Join(n.dir, "records", f.Name), nil, 0o600); err != nil {
			return err
		}
	}
	if n.bug != "gives no room back" {
		n.promised -= f.Size
	}
	if kind == volumes {
		if err := unix.Unmount(n.data(kind, f.Name), 0); err != nil {
			return err
		}
	}
	delete(n.has[kind], f.Name)
	return os.RemoveAll(n.data(kind, f.Name))
}

// volume returns the volume with an ID. Sometimes it asks for another try.
func (n *node) volume(id string) (*found, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch f := n.has[volumes][id]; {
	case n.loses():
		return nil, status.Error(codes.Aborted, "another call for it runs")
	case f == nil:
		return nil, status.Errorf(codes.NotFound, "volume %s", id)
	default:
		return f, nil
	}
}

// NodeStageVolume is described in the CSI.
func (n *node) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	f, err := n.volume(r.VolumeId)
	if err == nil && f.Comment != "" && n.bug != "stages what is retained" {
		err = status.Error(codes.Unavailable, "it is retained")
	}
	return &csi.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume is described in the CSI.
func (n *node) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	_, err := n.volume(r.VolumeId)
	if err == nil && n.bug == "loses a marker" {
		entries, _ := os.ReadDir(n.data(volumes, r.VolumeId))
		for _, e := range entries[:min(1, len(entries))] {
			err = os.Remove(filepath.Join(n.data(volumes, r.VolumeId), e.Name()))
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, err
}

// NodePublishVolume is described in the CSI.
func (n *node) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	_, err := n.volume(r.VolumeId)
	if err == nil {
		err = errors.Join(os.MkdirAll(r.TargetPath, 0o755), unix.Mount(n.data(volumes, r.VolumeId), r.TargetPath, "", unix.MS_BIND, ""))
	}
	return &csi.NodePublishVolumeResponse{}, err
}

// NodeUnpublishVolume is described in the CSI.
func (n *node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	_, err := n.volume(r.VolumeId)
	if err == nil {
		err = errors.Join(unix.Unmount(r.TargetPath, 0), os.Remove(r.TargetPath))
	}
	return &csi.NodeUnpublishVolumeResponse{}, err
}

// NodeExpandVolume is described in the CSI.
func (n *node) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	f, err := n.volume(r.VolumeId)
	size := r.GetCapacityRange().GetRequiredBytes()
	if err == nil && n.bug != "expands nothing" {
		err = n.mount(f.Name, size, unix.MS_REMOUNT)
	}
	if n.bug == "expands to less" {
		size--
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, err
}
