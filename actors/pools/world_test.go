package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// hang is how long a test waits for what must happen. In a bubble it costs nothing to wait longer, and
// the client of an array may wait for minutes.
const (
	hang         = 2 * time.Minute
	hangInBubble = 12 * time.Hour
)

// longestWait is the longest pause between two looks.
const longestWait = 64 * time.Millisecond

const gib = int64(1) << 30

// world is an API server, an array, and the controller that runs. Its pool is always usable: what
// watches over pools is tested on its own.
type world struct {
	*testing.T
	ctx context.Context
	api *kubeAPI
	// array is what is looked at, connect how a controller reaches it.
	array   array.Array
	connect func(*link) array.Array
	mem     *memArray
	// grown counts how often a volume on the array has grown.
	grown func(id string) int
	hang  time.Duration
	// settle is the controllers'.
	settle time.Duration
	// lifespan is the class's.
	lifespan atomic.Int64
	steps    *steps
	link     *link
	// events are the controllers'.
	events record.EventRecorder
	*Controller
}

// usablePools answers for the pools' actors.
type usablePools struct {
	*owner
	array    array.Array
	lifespan *atomic.Int64
}

func (u *usablePools) Start(s *actors.Supervisor) {
	u.supervisor = s
	s.Spawn(poolmessages.ClassesName, actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *poolmessages.ReservePool:
			if len(m.Refused)+len(m.Declined) > 0 {
				m.Fail(fmt.Errorf("%w: the only pool has refused it", volume.ErrNoSpace))
				return
			}
			m.Send(poolmessages.Reservation{Class: "class", Pool: "pool", Protocol: pools.NFS}, nil)
		case *poolmessages.LifespanOfClass:
			m.Send(time.Duration(u.lifespan.Load()), nil)
		case *poolmessages.NameOfClass:
			m.Send(cmp.Or(m.Class, "class"), nil)
		}
	}))
}

func (u *usablePools) Asked(m messages.Request) bool {
	switch m := m.(type) {
	case *poolmessages.UsePool:
		m.Send(poolmessages.UsablePool{
			Name: m.Pool, Array: u.array, PoolID: "pool-00000001", IQN: "iqn.2011-04.com.zadara:mem",
			Portal: "10.0.0.9:3260", CHAPSecret: "chap-pool",
		}, nil)
		return true
	case *poolmessages.DoubtPool:
		m.Send(struct{}{}, nil)
		return true
	}
	return u.owner.Asked(m)
}

// quiet counts nothing.
type quiet struct{}

func (quiet) VolumeParked() {}

func (quiet) VolumeUnparked() {}

func (quiet) ActorRestarted() {}

func (quiet) OperationEnded(string, time.Duration, error) {}

func (quiet) RetainedEnded(string) {}

func (quiet) Unclaimed(int) {}

func newWorld(t *testing.T) *world {
	return newMemWorld(t, newMemArray(), func(a *memArray) array.Array { return a })
}

// newMemWorld has an array in memory, in which something may be wrong.
func newMemWorld(t *testing.T, mem *memArray, wrong func(*memArray) array.Array) *world {
	t.Helper()
	w := newWorldOn(t, hang, mem, func(l *link) array.Array { return steppedArray{wrong(mem), l} })
	w.mem = mem
	w.grown = func(id string) int { return mem.grown[id] }
	return w
}

func newWorldOn(t *testing.T, hang time.Duration, on array.Array, connect func(*link) array.Array) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	w := &world{T: t, ctx: ctx, hang: hang, api: newKubeAPI(), array: on, connect: connect, steps: &steps{}, events: &record.FakeRecorder{}}
	for _, name := range []string{"node1", "node2"} {
		w.must(w.api.Create(ctx, &v1alpha1.PoolNode{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.PoolNodeSpec{Addresses: []string{"10.0.0." + name[4:]}, IQN: "iqn.2026-11.io.katbox:c:" + name},
		}))
		w.must(w.api.Create(ctx, coreNode(name)))
	}
	w.start()
	t.Cleanup(func() {
		w.stop()
		cancel()
	})
	return w
}

func coreNode(name string) *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.SetGroupVersionKind(rules.NodeGVK)
	return n
}

// start starts a controller, which learns what there is.
func (w *world) start() {
	w.Helper()
	w.link = &link{kubeAPI: w.api, steps: w.steps}
	cfg := env.Config{
		Resources: env.Resources{Client: w.link, Events: w.events}, Driver: testDriver, Cluster: "cluster", Log: logr.Discard(),
		Namespace: "katbox", CHAPNamespace: "chap", Metrics: quiet{}, Settle: w.settle,
	}
	system := actors.NewSystem(cfg.Log, 64)
	ctx, cancel := context.WithCancel(context.Background())
	e := env.New(ctx, system, cfg)
	w.must(system.Start(&usablePools{owner: newOwner(e), array: w.connect(w.link), lifespan: &w.lifespan}, cfg.Metrics, nil))
	w.Controller = &Controller{System: system, cancel: cancel}
	w.api.watch(w.Controller)
	w.Listed()
}

func (w *world) stop() {
	w.Helper()
	w.api.watch(nil)
	w.link.dead.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), w.hang)
	defer cancel()
	w.must(w.Stop(ctx))
}

// restart is what follows a crash.
func (w *world) restart() {
	w.stop()
	w.start()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// repeat repeats a call, as Kubernetes does, until it succeeds or its error is final; after a crash, of
// the next controller.
func (w *world) repeat(call func() error) error {
	w.Helper()
	for wait := time.Millisecond; ; wait = min(2*wait, longestWait) {
		err := call()
		switch {
		case w.link.dead.Load():
			w.restart()
		case err == nil || !repeatable(err):
			return err
		case w.ctx.Err() != nil:
			w.Fatalf("still: %v", err)
		}
		time.Sleep(wait)
	}
}

// repeatable reports whether an error leaves the outcome open.
func repeatable(err error) bool {
	return errors.Is(err, volume.ErrUncertain) || errors.Is(err, volume.ErrUnavailable) || errors.Is(err, volume.ErrBusy)
}

// until waits for what happens without a call.
func (w *world) until(what string, is func() bool) {
	w.Helper()
	for wait := time.Millisecond; !is(); wait = min(2*wait, longestWait) {
		if w.ctx.Err() != nil {
			w.Fatalf("never: %s", what)
		}
		if w.link.dead.Load() {
			w.restart()
		}
		time.Sleep(wait)
	}
}

// find reads a resource.
func find[T any, P interface {
	*T
	client.Object
}](w *world, name string) P {
	w.Helper()
	found := P(new(T))
	err := w.api.Get(w.ctx, client.ObjectKey{Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return found
}

func (w *world) volume(name string) *v1alpha1.PoolVolume { return find[v1alpha1.PoolVolume](w, name) }

func (w *world) snapshot(name string) *v1alpha1.PoolSnapshot {
	return find[v1alpha1.PoolSnapshot](w, name)
}

func (w *world) attachment(id, node string) *v1alpha1.PoolAttachment {
	return find[v1alpha1.PoolAttachment](w, pools.AttachmentName(id, node))
}

// create makes a volume of some GiB without faults.
func (w *world) create(name string, size int64, block bool) pools.Volume {
	w.Helper()
	v, err := w.CreateVolume(w.ctx, newVolume(name, size, block))
	w.must(err)
	return v
}

func newVolume(name string, size int64, block bool) pools.NewVolume {
	return pools.NewVolume{Name: name, Required: size * gib, Block: block, Claim: pools.Claim{Namespace: "ns", Name: name}}
}

// aVolume is the resource of a volume that is Ready.
func aVolume(name, pool string, version int) *v1alpha1.PoolVolume {
	return &v1alpha1.PoolVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)},
		Spec: v1alpha1.PoolVolumeSpec{
			ClassName: "fast", PoolName: pool, Size: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, Protocol: v1alpha1.NFS,
		},
		Status: v1alpha1.PoolVolumeStatus{State: v1alpha1.VolumeReady, ID: "volume-" + name, Capacity: resource.MustParse("1Gi")},
	}
}

// on tells what is on the array.
func (w *world) on() (on onArray) {
	w.Helper()
	w.must(w.array.Volumes(w.ctx, func(page []array.Volume) error { on.volumes = append(on.volumes, page...); return nil }))
	w.must(w.array.Snapshots(w.ctx, func(page []array.Snapshot) error { on.snapshots = append(on.snapshots, page...); return nil }))
	servers, err := w.array.Servers(w.ctx)
	w.must(err)
	on.servers = servers
	for _, v := range on.volumes {
		attached, err := w.array.Attachments(w.ctx, v.ID)
		w.must(err)
		on.attachments = append(on.attachments, attached...)
	}
	return on
}

type onArray struct {
	volumes     []array.Volume
	snapshots   []array.Snapshot
	servers     []array.Server
	attachments []array.Attachment
}

// named returns the one volume of a name; the test fails where there is none, or are two.
func (on onArray) named(w *world, name string) (found array.Volume) {
	w.Helper()
	count := 0
	for _, v := range on.volumes {
		if v.Name == name {
			found, count = v, count+1
		}
	}
	if count != 1 {
		w.Fatalf("%d volumes %s on the array", count, name)
	}
	return found
}

// nothingLeft fails the test where anything is left of volumes, on the array or of resources.
func (w *world) nothingLeft() {
	w.Helper()
	on := w.on()
	if len(on.volumes)+len(on.snapshots)+len(on.servers)+len(on.attachments) > 0 {
		w.Errorf("left on the array: %+v", on)
	}
	for _, list := range []client.ObjectList{&v1alpha1.PoolVolumeList{}, &v1alpha1.PoolSnapshotList{}, &v1alpha1.PoolAttachmentList{}} {
		w.must(w.api.List(w.ctx, list))
		if n := lengthOf(list); n > 0 {
			w.Errorf("%d left of %T", n, list)
		}
	}
}
