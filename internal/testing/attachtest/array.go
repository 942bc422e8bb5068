package attachtest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/controller/vpsa"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// Node is a node as arrays know it.
type Node struct {
	Name, IQN, Address string
}

// ThisNode returns this machine, with an IQN of the test's.
func ThisNode(t testing.TB) Node {
	t.Helper()
	return Node{Name: "node-1", IQN: "iqn.2026-11.io.katbox:test:node-1", Address: NodeAddress(t)}
}

// Array is a fake array with real data, until the end of the test. Its methods order what a person, or a
// fault, does to it.
type Array struct {
	*fakevpsa.Array
	// Client is what the controller reaches it by.
	Client array.Array
	// Portals are the addresses of its controllers, the first one active, with the port of iSCSI. Both
	// serve when bothPortals is set.
	Portals [2]string
	// User and Secret are what initiators log in with.
	User, Secret string

	pool string
}

var arrays atomic.Uint32

// NewArray starts an array. At the end of the test nothing may be mounted from it.
func NewArray(t testing.TB) *Array {
	t.Helper()
	return newArray(t, false)
}

// NewArrayOfNumbers starts an array whose disks do not say by their serial number which volume they are.
func NewArrayOfNumbers(t testing.TB) *Array {
	t.Helper()
	return newArray(t, true)
}

func newArray(t testing.TB, numbers bool) *Array {
	t.Helper()
	Need(t)
	// Each has addresses, a target and a directory of its own, also among the test programs of the machine.
	serial := uint32(os.Getpid()&0x3fff)<<8 | arrays.Add(1)&0xff
	dir := filepath.Join(variable(t, dirVariable), fmt.Sprintf("array-%08x", serial))
	plane, err := dataplane.NewKernel(dataplane.Config{Dir: dir, Source: netip.MustParseAddr(NodeAddress(t)), Numbers: numbers})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	o := fakevpsa.Options{NoRecycleBin: true, Plane: plane, Settings: fakevpsa.Settings{Serial: serial}}
	for i := range o.Portals {
		o.Portals[i] = fmt.Sprintf("10.%d.%d.%d", 64+serial>>16&0x3f, byte(serial>>8), byte(serial)<<1+byte(i))
	}
	f, err := fakevpsa.New(o)
	// What was begun ends, also after an error.
	t.Cleanup(func() {
		if err := plane.Destroy(); err != nil {
			t.Errorf("attachtest: the array's data plane: %v", err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("attachtest: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	client, err := vpsa.New(vpsa.Config{
		Endpoint: "http://array", Token: vpsa.Token(f.Settings().Token), Log: logr.Discard(), Transport: f.Transport(),
	})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	set := f.Settings()
	a := &Array{Array: f, Client: client, User: set.CHAPUser, Secret: set.CHAPSecret, pool: f.Pools()[0].ID}
	for i, portal := range set.Portals {
		a.Portals[i] = net.JoinHostPort(portal, "3260")
	}
	return a
}

// Create makes a volume.
func (a *Array) Create(t testing.TB, name string, gib int, block bool) array.Volume {
	t.Helper()
	v, err := a.Client.CreateVolume(t.Context(), array.NewVolume{Name: name, PoolID: a.pool, Size: array.Size(gib) * array.GiB, Block: block})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	return v
}

// Clone makes a volume with the content of another, or of one of its snapshots.
func (a *Array) Clone(t testing.TB, name string, source array.Volume, snapshot string) array.Volume {
	t.Helper()
	v, err := a.Client.CloneVolume(t.Context(), array.NewClone{Name: name, Group: source.Group, SnapshotID: snapshot})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	return v
}

// Snapshot takes a snapshot of a volume, and returns its ID.
func (a *Array) Snapshot(t testing.TB, name string, of array.Volume) string {
	t.Helper()
	s, err := a.Client.CreateSnapshot(t.Context(), array.NewSnapshot{Name: name, VolumeID: of.ID})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	return s.ID
}

// Grow makes a volume larger.
func (a *Array) Grow(t testing.TB, v array.Volume, gib int) {
	t.Helper()
	if _, err := a.Client.GrowVolume(t.Context(), v.ID, array.Size(gib)*array.GiB); err != nil {
		t.Fatalf("attachtest: %v", err)
	}
}

// Attach attaches a volume to a node, as the controller does, and returns what the node learns of it. A
// volume that is reached over iSCSI gets no file system by it.
func (a *Array) Attach(t testing.TB, v array.Volume, node Node, readOnly bool) pools.Attachment {
	t.Helper()
	server, err := a.Client.EnsureServer(t.Context(), array.NewServer{Name: node.Name, IQN: node.IQN, Address: node.Address})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	at, err := a.Client.Attach(t.Context(), array.NewAttachment{ServerID: server.ID, VolumeID: v.ID, NFS: !v.Block, ReadOnly: readOnly})
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	// The portal may have changed since the volume was made.
	v, err = a.Client.Volume(t.Context(), v.ID)
	if err != nil {
		t.Fatalf("attachtest: %v", err)
	}
	answer := pools.Attachment{Volume: v.ID, Node: node.Name, ReadOnly: readOnly, Protocol: pools.NFS, Export: v.Export}
	if v.Block {
		health, err := a.Client.Health(t.Context())
		if err != nil {
			t.Fatalf("attachtest: %v", err)
		}
		answer = pools.Attachment{
			Volume: v.ID, Node: node.Name, ReadOnly: readOnly, Protocol: pools.ISCSI,
			Target: at.Target, Portal: health.Portal, LUN: at.LUN, Serial: v.ID, CHAPSecret: "chap-array",
		}
	}
	return answer
}

// Detach detaches a volume from a node: the node is cut off when it returns.
func (a *Array) Detach(t testing.TB, v array.Volume, node Node) {
	t.Helper()
	for _, server := range a.Servers() {
		if server.Name != node.Name {
			continue
		}
		if err := a.Client.Detach(t.Context(), v.ID, server.ID); err != nil {
			t.Fatalf("attachtest: %v", err)
		}
	}
}

// Leave makes the array answer no more, until Return or the end of the test.
func (a *Array) Leave(t testing.TB, how dataplane.Away) {
	t.Helper()
	// What is unmounted at the end of the test would wait for the array.
	t.Cleanup(func() { a.Return(t) })
	if err := a.Array.Leave(how); err != nil {
		t.Fatalf("attachtest: %v", err)
	}
}

// Return makes it answer again.
func (a *Array) Return(t testing.TB) {
	t.Helper()
	if err := a.Array.Return(); err != nil {
		t.Fatalf("attachtest: %v", err)
	}
}

// Export is a volume's path without the array's address.
func Export(v array.Volume) string {
	_, path, _ := strings.Cut(v.Export, ":")
	return path
}
