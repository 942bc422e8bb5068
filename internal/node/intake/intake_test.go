package intake

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
)

// patience is far longer than anything should take.
const patience = 2 * time.Minute

// node knows some volumes.
type node struct {
	mu sync.Mutex
	// pods are those of the volumes, errors what it answers first.
	pods   map[volume.ID]volume.PodUID
	errors []error
	// onEnd is called before each answer.
	onEnd func(volume.ID)
	ended map[volume.ID][]volume.Outcome
	// kept is what was kept of pods.
	kept map[volume.PodUID]string
	// done has a value after each answer.
	done chan volume.ID
}

func newNode() *node {
	return &node{pods: map[volume.ID]volume.PodUID{}, ended: map[volume.ID][]volume.Outcome{}, done: make(chan volume.ID, 100_000)}
}

func (n *node) KeepEnd(_ context.Context, pod volume.PodUID, end []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept == nil {
		n.kept = map[volume.PodUID]string{}
	}
	n.kept[pod] = string(end)
	n.done <- ""
	return nil
}

func (n *node) publish(pod volume.PodUID, name string) volume.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := volume.KubeletID(pod, name)
	n.pods[id] = pod
	return volume.Record{ID: id, Pod: pod, VolumeName: name}
}

func (n *node) End(ctx context.Context, id volume.ID, pod volume.PodUID, o volume.Outcome) error {
	defer func() { n.done <- id }()
	if n.onEnd != nil {
		n.onEnd(id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.errors) > 0 {
		err := n.errors[0]
		n.errors = n.errors[1:]
		return err
	}
	if n.pods[id] != pod {
		return fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	n.ended[id] = append(n.ended[id], o)
	return ctx.Err()
}

// outcomes are those that were noted for a volume.
func (n *node) outcomes(pod volume.PodUID, name string) []volume.Outcome {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.ended[volume.KubeletID(pod, name)])
}

// scene is an intake and its node.
type scene struct {
	*Intake
	t    testing.TB
	node *node

	mu  sync.Mutex
	log strings.Builder
}

func newScene(t testing.TB) *scene {
	s := &scene{t: t, node: newNode()}
	i, err := start(Config{Node: s.node, Log: funcr.New(func(_, line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintln(&s.log, line)
	}, funcr.Options{})}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	s.Intake = i
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *scene) stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		s.t.Error(err)
	}
}

func (s *scene) take(pod volume.PodUID, o volume.Outcome, volumes ...string) {
	s.t.Helper()
	if err := s.Take(s.t.Context(), outcome.Ending{Pod: pod, Outcome: o, Volumes: volumes}); err != nil {
		s.t.Error(err)
	}
}

// settle waits until the node was asked so often.
func (s *scene) settle(times int) {
	s.t.Helper()
	for range times {
		select {
		case <-s.node.done:
		case <-time.After(patience):
			s.t.Fatal("the node is not asked")
		}
	}
}

// keeps reports whether the ending of a volume that is not known is kept.
func (s *scene) keeps(pod volume.PodUID, name string) bool {
	s.Intake.mu.Lock()
	defer s.Intake.mu.Unlock()
	_, ok := s.early[volume.KubeletID(pod, name)]
	return ok
}

func (s *scene) want(pod volume.PodUID, name string, want ...volume.Outcome) {
	s.t.Helper()
	if got := s.node.outcomes(pod, name); !slices.Equal(got, want) {
		s.t.Errorf("volume %s of %s has %v, want %v", name, pod, got, want)
	}
}

// TestNotes: each volume of the pod has its outcome, once.
func TestNotes(t *testing.T) {
	s := newScene(t)
	s.node.publish("p", "a")
	s.node.publish("p", "b")
	s.take("p", volume.Failed, "a", "b")
	s.take("p", volume.Failed, "a", "b")
	s.take("p", volume.Succeeded, "a", "b")
	s.take("q", volume.OutcomeUnknown, "a")
	s.take("q", volume.Failed)
	s.settle(2)
	s.stop()
	s.want("p", "a", volume.Failed)
	s.want("p", "b", volume.Failed)
	if len(s.node.done) > 0 {
		t.Error("the node was asked more often")
	}
}

// TestContradicted: a pod that Succeeded and is told to go later only looks Stopped. Failed is believed.
func TestContradicted(t *testing.T) {
	s := newScene(t)
	s.node.publish("p", "a")
	for i, o := range []volume.Outcome{volume.Succeeded, volume.Stopped, volume.Failed, volume.Succeeded} {
		s.take("p", o, "a")
		if i == 0 || i == 2 {
			s.settle(1) // in this order
		}
	}
	s.stop()
	s.want("p", "a", volume.Succeeded, volume.Failed)
}

// TestEarly: an ending that comes before its volume is noted with the publish, for that pod alone.
func TestEarly(t *testing.T) {
	s := newScene(t)
	s.take("p", volume.Succeeded, "a")
	s.settle(2)
	for deadline := time.Now().Add(patience); !s.keeps("p", "a") && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	liar := s.node.publish("p", "a")
	liar.Pod = "q"
	s.keep(volume.KubeletID("r", "a"), early{"r", volume.Succeeded, "a", time.Now().Add(-earlyLimit - time.Minute)})
	s.Published(s.node.publish("r", "a")) // too old
	s.Published(s.node.publish("x", "a")) // of which nothing is known
	s.Published(s.node.publish("p", "a"))
	s.settle(1)
	s.want("p", "a", volume.Succeeded)
	s.want("r", "a")
	s.want("x", "a")
	s.keep(liar.ID, early{"p", volume.Failed, "a", time.Now()})
	s.Published(liar)
	s.stop()
	s.want("p", "a", volume.Succeeded)
	(*Intake)(nil).Published(liar)
	if len(s.early) > 0 {
		t.Errorf("still kept: %v", s.early)
	}
}

// TestPublishedMeanwhile: a volume that becomes known between the question and the keeping is found.
func TestPublishedMeanwhile(t *testing.T) {
	s := newScene(t)
	asked := 0
	s.node.onEnd = func(volume.ID) {
		if asked++; asked == 2 {
			s.node.publish("p", "a")
		}
	}
	s.take("p", volume.Stopped, "a")
	s.settle(2)
	s.stop()
	s.want("p", "a", volume.Stopped)
	if len(s.early) > 0 {
		t.Errorf("still kept: %v", s.early)
	}
}

// TestRepeats: what cannot be noted is tried again; then it stays unknown, until a source repeats it.
func TestRepeats(t *testing.T) {
	s := newScene(t)
	s.node.publish("p", "a")
	broken := errors.New("disk on fire")
	s.node.errors = []error{broken, volume.ErrBusy}
	s.take("p", volume.Failed, "a")
	s.settle(3)
	s.want("p", "a", volume.Failed)

	s.node.publish("q", "a")
	s.node.mu.Lock()
	s.node.errors = slices.Repeat([]error{broken}, attempts)
	s.node.mu.Unlock()
	s.take("q", volume.Failed, "a")
	s.settle(attempts)
	s.want("q", "a")
	for deadline := time.Now().Add(patience); s.node.outcomes("q", "a") == nil && time.Now().Before(deadline); {
		s.take("q", volume.Failed, "a")
	}
	s.want("q", "a", volume.Failed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := strings.Count(s.log.String(), "disk on fire"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, s.log.String())
	}
}

// TestRefused: what the node will never accept is not tried again.
func TestRefused(t *testing.T) {
	for _, err := range []error{volume.ErrInvalid, volume.ErrGone} {
		s := newScene(t)
		s.node.publish("p", "a")
		s.node.errors = []error{err}
		s.take("p", volume.Failed, "a")
		s.settle(1)
		s.stop()
		s.want("p", "a")
	}
}

// TestBounds: neither the pods that were seen nor the volumes that are not known take memory without end.
func TestBounds(t *testing.T) {
	s := newScene(t)
	const pods = 2*mostSeen + mostSeen/2
	for i := range pods {
		s.take(volume.PodUID(fmt.Sprint("p", i)), volume.Succeeded, "a")
	}
	s.settle(2 * pods)
	s.stop()
	if len(s.early) > mostEarly || len(s.order) > 2*mostEarly || len(s.early) < mostEarly/2 {
		t.Errorf("%d volumes are kept that are not known, and %d names", len(s.early), len(s.order))
	}
	if n := len(s.seen) + len(s.before); n > 2*mostSeen || n < mostSeen {
		t.Errorf("%d pods are remembered", n)
	}
}

// TestBurst: 5,000 pods end at once, and a node that is slow delays who brings them, not who publishes.
func TestBurst(t *testing.T) {
	s := newScene(t)
	for i := range 5000 {
		s.node.publish(volume.PodUID(fmt.Sprint("p", i)), "a")
	}
	var sources sync.WaitGroup
	for range 3 { // two gateways and a kubelet
		sources.Go(func() {
			for i := range 5000 {
				s.take(volume.PodUID(fmt.Sprint("p", i)), volume.Succeeded, "a")
			}
		})
	}
	sources.Wait()
	s.settle(5000)
	s.stop()
	for i := range 5000 {
		s.want(volume.PodUID(fmt.Sprint("p", i)), "a", volume.Succeeded)
	}
}

// TestNodeHangs: while the node answers nothing the source waits for its turn, and can give up; what it
// gave up may be said again.
func TestNodeHangs(t *testing.T) {
	s := newScene(t)
	release := make(chan struct{})
	s.node.onEnd = func(volume.ID) { <-release }
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	gaveUp, taken := errors.New("gave up"), 0
	var err error
	for i := range mostQueued + parallel + 1 {
		pod := volume.PodUID(fmt.Sprint("p", i))
		s.node.publish(pod, "a")
		if i == mostQueued+parallel {
			cancel(gaveUp)
		}
		if err = s.Take(ctx, outcome.Ending{Pod: pod, Outcome: volume.Failed, Volumes: []string{"a"}}); err == nil {
			taken++
		}
		s.Published(volume.Record{ID: volume.KubeletID(pod, "a"), Pod: pod})
	}
	if taken < mostQueued || taken > mostQueued+parallel {
		t.Errorf("%d were taken, the last answer is %v", taken, err)
	}
	close(release)
	s.take(volume.PodUID(fmt.Sprint("p", mostQueued+parallel)), volume.Failed, "a")
	s.settle(taken)
}

func TestConfig(t *testing.T) {
	if _, err := Start(Config{}); err == nil {
		t.Error("it starts without a node")
	}
}

// TestEndIsKept: what a source says of the end of a pod is passed on, and where it says nothing, nothing is.
func TestEndIsKept(t *testing.T) {
	n := newNode()
	n.publish("one", "v")
	n.publish("two", "v")
	i, err := start(Config{Node: n}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []outcome.Ending{
		{Pod: "one", Outcome: volume.Failed, Volumes: []string{"v"}, End: []byte("{}")},
		{Pod: "one", Outcome: volume.Failed, Volumes: []string{"v"}, End: []byte("again")},
		{Pod: "two", Outcome: volume.Failed, Volumes: []string{"v"}},
	} {
		if err := i.Take(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		<-n.done
	}
	if err := i.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(n.kept) != 1 || n.kept["one"] != "{}" {
		t.Errorf("kept is %q", n.kept)
	}
}
