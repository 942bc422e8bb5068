package pools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
)

// faultKind is what goes wrong at a step: a call of the array, or a write to the Kubernetes API.
type faultKind int

const (
	noFault faultKind = iota
	// failsBefore: the request does not arrive. answerLost: it is carried out.
	failsBefore
	answerLost
	// crashBefore and crashAfter: the controller ends before the request is sent, or after it was
	// carried out.
	crashBefore
	crashAfter
)

func (k faultKind) String() string {
	return [...]string{"none", "fails before", "answer lost", "crash before", "crash after"}[k]
}

// steps counts steps, and makes one of them go wrong.
type steps struct {
	mu    sync.Mutex
	names []string
	// armed: steps count. at is the one that goes wrong.
	armed bool
	at    int
	kind  faultKind
}

func (s *steps) arm(at int, kind faultKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.names, s.at, s.kind = true, nil, at, kind
}

// disarm returns the steps that there were.
func (s *steps) disarm() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	return s.names
}

func (s *steps) next(name string) faultKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed {
		return noFault
	}
	s.names = append(s.names, name)
	if len(s.names)-1 == s.at {
		return s.kind
	}
	return noFault
}

var (
	errCrashed = errors.New("the controller has ended")
	errLost    = fmt.Errorf("%w: injected: %w", array.ErrUncertain, array.ErrTimeout)
	errRefused = fmt.Errorf("%w: injected: connection refused", array.ErrUnreachable)
)

// link is what one controller reaches the world through. After a crash nothing gets through any more.
type link struct {
	*kubeAPI
	steps *steps
	// dead: the controller has crashed.
	dead atomic.Bool
}

// step does one step, or lets it go wrong.
func (l *link) step(name string, before, lost error, do func() error) error {
	if l.dead.Load() {
		return errCrashed
	}
	switch l.steps.next(name) {
	case failsBefore:
		return before
	case answerLost:
		_ = do()
		return lost
	case crashBefore:
		l.dead.Store(true)
		return errCrashed
	case crashAfter:
		_ = do()
		l.dead.Store(true)
		return errCrashed
	}
	return do()
}

// write is a step that writes to the Kubernetes API.
func (l *link) write(verb string, o client.Object, do func() error) error {
	refused := apierrors.NewServiceUnavailable("injected")
	lost := apierrors.NewServerTimeout(schema.GroupResource{Resource: rules.ResourceKind(o)}, verb, 1)
	return l.step(verb+" "+rules.ResourceKind(o), refused, lost, do)
}

func (l *link) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if l.dead.Load() {
		return errCrashed
	}
	return l.kubeAPI.Get(ctx, name, into, opts...)
}

func (l *link) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return l.write("create", o, func() error { return l.kubeAPI.Create(ctx, o, opts...) })
}

func (l *link) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return l.write("update", o, func() error { return l.kubeAPI.Update(ctx, o, opts...) })
}

func (l *link) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return l.write("delete", o, func() error { return l.kubeAPI.Delete(ctx, o, opts...) })
}

func (l *link) Status() client.SubResourceWriter { return linkStatus{l: l} }

type linkStatus struct {
	client.SubResourceWriter // what no test calls
	l                        *link
}

func (s linkStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.l.write("status", o, func() error { return s.l.kubeAPI.Status().Update(ctx, o, opts...) })
}

// steppedArray is the array behind a link.
type steppedArray struct {
	array.Array
	l *link
}

// called does a call as a step.
func called[R any](a steppedArray, name string, do func() (R, error)) (got R, err error) {
	err = a.l.step(name, errRefused, errLost, func() (err error) {
		got, err = do()
		return err
	})
	if err != nil {
		var none R
		return none, err
	}
	return got, nil
}

func nothing(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

func (a steppedArray) Volume(ctx context.Context, id string) (array.Volume, error) {
	return called(a, "Volume", func() (array.Volume, error) { return a.Array.Volume(ctx, id) })
}

func (a steppedArray) VolumeNamed(ctx context.Context, name string) (array.Volume, error) {
	return called(a, "VolumeNamed", func() (array.Volume, error) { return a.Array.VolumeNamed(ctx, name) })
}

func (a steppedArray) CreateVolume(ctx context.Context, n array.NewVolume) (array.Volume, error) {
	return called(a, "CreateVolume", func() (array.Volume, error) { return a.Array.CreateVolume(ctx, n) })
}

func (a steppedArray) CloneVolume(ctx context.Context, c array.NewClone) (array.Volume, error) {
	return called(a, "CloneVolume", func() (array.Volume, error) { return a.Array.CloneVolume(ctx, c) })
}

func (a steppedArray) GrowVolume(ctx context.Context, id string, to array.Size) (array.Volume, error) {
	return called(a, "GrowVolume", func() (array.Volume, error) { return a.Array.GrowVolume(ctx, id, to) })
}

func (a steppedArray) CommentVolume(ctx context.Context, id, comment string) error {
	_, err := called(a, "CommentVolume", nothing(func() error { return a.Array.CommentVolume(ctx, id, comment) }))
	return err
}

func (a steppedArray) DeleteVolume(ctx context.Context, id string) error {
	_, err := called(a, "DeleteVolume", nothing(func() error { return a.Array.DeleteVolume(ctx, id) }))
	return err
}

func (a steppedArray) Snapshots(ctx context.Context, visit func([]array.Snapshot) error) error {
	_, err := called(a, "Snapshots", nothing(func() error { return a.Array.Snapshots(ctx, visit) }))
	return err
}

func (a steppedArray) CreateSnapshot(ctx context.Context, n array.NewSnapshot) (array.Snapshot, error) {
	return called(a, "CreateSnapshot", func() (array.Snapshot, error) { return a.Array.CreateSnapshot(ctx, n) })
}

func (a steppedArray) DeleteSnapshot(ctx context.Context, id string) error {
	_, err := called(a, "DeleteSnapshot", nothing(func() error { return a.Array.DeleteSnapshot(ctx, id) }))
	return err
}

func (a steppedArray) Servers(ctx context.Context) ([]array.Server, error) {
	return called(a, "Servers", func() ([]array.Server, error) { return a.Array.Servers(ctx) })
}

func (a steppedArray) EnsureServer(ctx context.Context, n array.NewServer) (array.Server, error) {
	return called(a, "EnsureServer", func() (array.Server, error) { return a.Array.EnsureServer(ctx, n) })
}

func (a steppedArray) DeleteServer(ctx context.Context, id string) error {
	_, err := called(a, "DeleteServer", nothing(func() error { return a.Array.DeleteServer(ctx, id) }))
	return err
}

func (a steppedArray) Attachments(ctx context.Context, id string) ([]array.Attachment, error) {
	return called(a, "Attachments", func() ([]array.Attachment, error) { return a.Array.Attachments(ctx, id) })
}

func (a steppedArray) Attach(ctx context.Context, n array.NewAttachment) (array.Attachment, error) {
	return called(a, "Attach", func() (array.Attachment, error) { return a.Array.Attach(ctx, n) })
}

func (a steppedArray) Detach(ctx context.Context, volumeID, serverID string) error {
	_, err := called(a, "Detach", nothing(func() error { return a.Array.Detach(ctx, volumeID, serverID) }))
	return err
}
