package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/controller/vpsa"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

const (
	testCluster  = "cluster-uid"
	testDriver   = "array.csi.katbox.io"
	testInterval = 50 * time.Second
)

// Times of the controller, as users meet them.
const (
	// firstSweep and nextSweep are when volumes without a claim are looked for.
	firstSweep, nextSweep = time.Hour, 24 * time.Hour
	// probeBound is how long a pool waits for its array.
	probeBound = 30 * time.Second
	// connectBound is how long nodes may need to connect after a start.
	connectBound = 30 * time.Second
	// soonLook is when a pool on a node is asked how it is after a change.
	soonLook = 2 * time.Second
)

// selectedNodeOf is the annotation by which the scheduler says where a claim's pod runs.
const selectedNodeOf = "volume.kubernetes.io/selected-node"

// testPools is a controller with arrays in memory, in a bubble in which hours pass at once.
type testPools struct {
	*testing.T
	kube       *patchingAPI
	controller *Controller
	arrays     map[string]*testArray
	// fakes are arrays that are reached over HTTP.
	fakes     map[string]*fakevpsa.Array
	events    *eventLog
	states    *stateLog
	unclaimed countUnclaimed
}

// inPools runs a test with a controller that has begun. The test prepares what there is before it.
func inPools(t *testing.T, prepare func(h *testPools), test func(h *testPools)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &testPools{T: t, kube: newPatchingAPI(), arrays: map[string]*testArray{}, fakes: map[string]*fakevpsa.Array{}, events: &eventLog{}}
		h.states = &stateLog{of: map[string][]string{}}
		prepare(h)
		h.start()
		test(h)
		h.stop()
	})
}

func (h *testPools) start() { h.startTold(func(*Controller) {}) }

// startTold lets others tell the controller something before it knows all resources.
func (h *testPools) startTold(tell func(*Controller)) {
	c, err := Start(env.Config{
		Resources: env.Resources{Client: h.kube, Events: h.events}, Connect: h.connect, Namespace: "katbox", CHAPNamespace: "katbox-chap",
		Driver: testDriver, LocalDriver: "local.csi.katbox.io", Cluster: testCluster, ProbeInterval: testInterval, SyncInterval: 5 * time.Minute,
		Metrics: &h.unclaimed, Log: logr.Discard(),
	})
	if err != nil {
		h.Fatal(err)
	}
	h.controller = c
	tell(c)
	h.kube.watch(&loggingWatcher{c, h.states})
	c.Listed()
	synctest.Wait()
}

func (h *testPools) stop() {
	h.kube.watch(nil)
	if err := h.controller.Stop(context.Background()); err != nil {
		h.Error(err)
	}
	time.Sleep(2 * time.Second) // the library's dead letter throttle
}

// pass lets time pass, and all that happens meanwhile.
func (h *testPools) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *testPools) connect(a env.Access) (array.Array, error) {
	if over := h.fakes[a.Endpoint]; over != nil {
		return vpsa.New(vpsa.Config{Endpoint: a.Endpoint, Token: vpsa.Token(a.Token), Log: logr.Discard(), Transport: over.Transport()})
	}
	found := h.arrays[a.Endpoint]
	if found == nil {
		return nil, fmt.Errorf("%w: no array at %s", array.ErrUnreachable, a.Endpoint)
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	found.tokens = append(found.tokens, a.Token)
	return &asking{testArray: found, token: a.Token}, nil
}

// add makes a resource.
func (h *testPools) add(o client.Object) {
	h.Helper()
	o.SetGeneration(1)
	status := clone(o)
	if err := h.kube.Create(context.Background(), o); err != nil {
		h.Fatal(err)
	}
	switch o.(type) {
	case *v1alpha1.PoolVolume, *v1alpha1.PoolSnapshot, *v1alpha1.PoolAttachment:
		setStatusOf(o, status)
		if err := h.kube.Status().Update(context.Background(), o); err != nil {
			h.Fatal(err)
		}
	}
}

// addPool makes a Pool with an array.
func (h *testPools) addPool(name, class string) *testArray {
	h.Helper()
	endpoint := "https://" + name
	a := &testArray{memArray: newMemArray(), calls: map[string]int{}, token: "token-" + name, health: array.Health{
		Version: "22.06-sp1-123", IQN: "iqn.2011-04.com.zadara:" + name, Portal: "10.0.0.9:3260",
		CHAP:  array.CHAP{User: "user", Secret: "secret"},
		Pools: []array.Pool{{ID: "pool-00000001", Name: "pool", Total: 1000 << 30, Available: 900 << 30, Provisioned: 200 << 30}},
	}}
	h.arrays[endpoint] = a
	h.addPoolAt(name, class, endpoint, a.token)
	return a
}

// addFake makes a Pool with an array that is reached over HTTP.
func (h *testPools) addFake(name, class string, o fakevpsa.Options) *fakevpsa.Array {
	h.Helper()
	a, err := fakevpsa.New(o)
	if err != nil {
		h.Fatal(err)
	}
	endpoint := "https://" + name
	h.fakes[endpoint] = a
	h.addPoolAt(name, class, endpoint, "token")
	return a
}

func (h *testPools) addPoolAt(name, class, endpoint, token string) {
	h.Helper()
	h.setToken(name, token)
	h.add(&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PoolSpec{
		ClassName: class, VPSA: v1alpha1.VPSA{Endpoint: endpoint, CredentialsSecretRef: v1alpha1.SecretRef{Name: name}},
	}})
}

func (h *testPools) setToken(pool, token string) {
	h.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: pool}, Data: map[string][]byte{"token": []byte(token + "\n")}}
	_ = h.kube.Delete(context.Background(), s)
	if err := h.kube.Create(context.Background(), s); err != nil {
		h.Fatal(err)
	}
}

func (h *testPools) addClass(name string, change func(*v1alpha1.PoolClassSpec)) {
	h.Helper()
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if change != nil {
		change(&c.Spec)
	}
	h.add(c)
}

// get reads a resource.
func get[T any, P interface {
	*T
	client.Object
}](h *testPools, name string) P {
	h.Helper()
	o := P(new(T))
	if err := h.kube.Get(context.Background(), client.ObjectKey{Name: name}, o); err != nil {
		h.Fatalf("read %T %s: %v", o, name, err)
	}
	return o
}

func (h *testPools) pool(name string) *v1alpha1.Pool { h.Helper(); return get[v1alpha1.Pool](h, name) }

func (h *testPools) class(name string) *v1alpha1.PoolClass {
	h.Helper()
	return get[v1alpha1.PoolClass](h, name)
}

// exists reports whether there is a resource.
func (h *testPools) exists(o client.Object, name string) bool {
	return h.kube.Get(context.Background(), client.ObjectKey{Name: name}, o) == nil
}

// changePool changes the spec or the annotations of a Pool, as a person does.
func (h *testPools) changePool(name string, change func(*v1alpha1.Pool)) {
	h.Helper()
	p := h.pool(name)
	change(p)
	p.Generation++
	if err := h.kube.Update(context.Background(), p); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

func (h *testPools) remove(o client.Object, name string) {
	h.Helper()
	o.SetName(name)
	if err := h.kube.Delete(context.Background(), o); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// wantState fails the test unless the pool is in a state, for a reason that its condition names.
func (h *testPools) wantState(name string, want v1alpha1.PoolState, condition, reason string) {
	h.Helper()
	p := h.pool(name)
	if p.Status.State != want {
		h.Errorf("pool %s is %s, want %s: %+v", name, p.Status.State, want, p.Status.Conditions)
	}
	if condition == "" {
		return
	}
	i := slices.IndexFunc(p.Status.Conditions, func(c metav1.Condition) bool { return c.Type == condition })
	if i < 0 || p.Status.Conditions[i].Reason != reason {
		h.Errorf("pool %s: condition %s in %+v, want reason %s", name, condition, p.Status.Conditions, reason)
	}
}

// ask asks an actor as a task does.
func ask[R any](h *testPools, q messages.Question[R]) (R, error) {
	h.Helper()
	to := h.controller.Supervisor()
	switch any(q).(type) {
	case *poolmessages.ReservePool, *poolmessages.ClassCapacity:
		to = h.controller.Single(poolmessages.ClassesName)
	}
	return actors.Ask(context.Background(), h.controller.Root, to, q)
}

func (h *testPools) use(pool string) (poolmessages.UsablePool, error) {
	h.Helper()
	return ask(h, &poolmessages.UsePool{Routing: messages.RoutingTo(context.Background(), rules.KindPool, pool), Pool: pool})
}

// testArray is an array that a test can let fail.
type testArray struct {
	*memArray
	mu     sync.Mutex
	health array.Health
	token  string
	// fails answers instead of the array; hangs holds every call until it is closed.
	fails  error
	panics bool
	hangs  chan struct{}
	// holdsList holds the list of volumes only.
	holdsList chan struct{}
	tokens    []string
	calls     map[string]int
	// measures is the size in GiB of an array that tells what is free; 0: it tells what health says. others is
	// what others have put there.
	measures int64
	others   array.Size
}

// asking is a testArray for a client with a token.
type asking struct {
	*testArray
	token string
}

func (a *asking) arrived(ctx context.Context, call string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[call]++
	if hangs := a.hangs; hangs != nil {
		a.mu.Unlock()
		select {
		case <-hangs:
		case <-ctx.Done():
		}
		a.mu.Lock()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", array.ErrTimeout, ctx.Err())
	}
	if a.panics {
		panic("a mistake in the client")
	}
	if a.fails == nil && a.token != a.testArray.token {
		return array.ErrCredentials
	}
	return a.fails
}

func (a *asking) Health(ctx context.Context) (array.Health, error) {
	if err := a.arrived(ctx, "Health"); err != nil {
		return array.Health{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.health
	h.Pools = slices.Clone(h.Pools)
	if a.measures > 0 {
		a.memArray.mu.Lock()
		h.Pools[0].Total, h.Pools[0].Available = a.measures<<30, (a.room - a.others).Bytes()
		a.memArray.mu.Unlock()
	}
	return h, nil
}

func (a *asking) Configure(ctx context.Context) ([]string, error) {
	return []string{"the recycle bin is off"}, a.arrived(ctx, "Configure")
}

func (a *asking) Volumes(ctx context.Context, visit func([]array.Volume) error) error {
	if err := a.arrived(ctx, "Volumes"); err != nil {
		return err
	}
	a.mu.Lock()
	hold := a.holdsList
	a.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return a.memArray.Volumes(ctx, visit)
}

func (a *asking) Volume(ctx context.Context, id string) (array.Volume, error) {
	if err := a.arrived(ctx, "Volume"); err != nil {
		return array.Volume{}, err
	}
	return a.memArray.Volume(ctx, id)
}

func (a *asking) DeleteVolume(ctx context.Context, id string) error {
	if err := a.arrived(ctx, "DeleteVolume"); err != nil {
		return err
	}
	return a.memArray.DeleteVolume(ctx, id)
}

// change changes what the array says.
func (a *testArray) change(f func(*testArray)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// called returns how often a method was called.
func (a *testArray) called(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[method]
}

// used returns the tokens of the clients that were made.
func (a *testArray) used() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(a.tokens)
}

var errNotReached = errors.New("dial tcp: no route to host")

// countUnclaimed keeps, of all metrics, what each look for volumes without a claim has found.
type countUnclaimed struct {
	quiet
	mu   sync.Mutex
	each []int
}

func (c *countUnclaimed) Unclaimed(volumes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.each = append(c.each, volumes)
}

// metaProtected is the metadata of a resource that waits for us before it goes.
func metaProtected(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}}
}
