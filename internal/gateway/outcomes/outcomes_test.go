package outcomes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
)

// patience is far longer than anything should take.
const patience = 2 * time.Minute

// pod is one with a Katbox volume on a node.
func pod(node, uid string, phase core.PodPhase) *core.Pod {
	p := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: "ci", Name: "pod-" + uid, UID: types.UID(uid), ResourceVersion: "7"},
		Spec: core.PodSpec{NodeName: node, Volumes: []core.Volume{
			{Name: "empty"}, {Name: "scratch", VolumeSource: core.VolumeSource{CSI: &core.CSIVolumeSource{Driver: "d"}}},
		}},
	}
	p.Status.Phase = phase
	return p
}

// nodes play the nodes.
type nodes struct {
	mu sync.Mutex
	// away are not connected, endless keep no ends; errs are the first answers of a node, full is told each request.
	away    map[string]bool
	endless map[string]bool
	errs    map[string][]error
	told    chan string // "NODE UID OUTCOME VOLUMES"
	full    func(node string, o api.Outcomes)
}

func (n *nodes) Tell(ctx context.Context, node string, o api.Outcomes) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.full != nil {
		n.full(node, o)
	}
	if n.away[node] {
		return fmt.Errorf("%w: %s", ErrAway, node)
	}
	if errs := n.errs[node]; len(errs) > 0 {
		n.errs[node] = errs[1:]
		return errs[0]
	}
	for _, item := range o.Items {
		n.told <- fmt.Sprint(node, " ", item.PodUID, " ", item.Outcome, " ", item.Volumes)
	}
	return ctx.Err()
}

func (n *nodes) KeepsEnds(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.endless[node]
}

func (n *nodes) set(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
}

// scene is an Outcomes with its cluster.
type scene struct {
	*Outcomes
	t      testing.TB
	client *fake.Clientset
	nodes  *nodes
	m      *gatewaymetrics.Metrics

	mu  sync.Mutex
	log strings.Builder
}

func newScene(t testing.TB, pods ...runtime.Object) *scene {
	s := &scene{t: t, client: fake.NewClientset(pods...), m: gatewaymetrics.New("v", "r")}
	s.nodes = &nodes{away: map[string]bool{}, errs: map[string][]error{}, told: make(chan string, 10_000)}
	o, err := New(Config{Pods: s.client.CoreV1(), Nodes: s.nodes, Metrics: s.m, Log: funcr.New(func(_, line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintln(&s.log, line)
	}, funcr.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	o.waits = retry.Backoff{First: time.Millisecond, Longest: 10 * time.Millisecond}
	s.Outcomes = o
	t.Cleanup(o.Close)
	return s
}

// run watches until the test ends.
func (s *scene) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	s.t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

func (s *scene) wantTold(want ...string) {
	s.t.Helper()
	var got []string
	for range want {
		select {
		case told := <-s.nodes.told:
			got = append(got, told)
		case <-time.After(patience):
			s.t.Fatalf("told only %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("told %q, want %q", got, want)
	}
}

func (s *scene) metric(name string) float64 {
	s.t.Helper()
	families, err := s.m.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	s.t.Fatalf("there is no %s", name)
	return 0
}

// TestTellsNodes: pods that had ended, and those that end later, of their own nodes alone.
func TestTellsNodes(t *testing.T) {
	noVolumes, noNode := pod("n1", "u5", core.PodFailed), pod("", "u6", core.PodFailed)
	noVolumes.Spec.Volumes = noVolumes.Spec.Volumes[:1]
	mirror := pod("n1", "u7", core.PodFailed)
	mirror.Annotations = map[string]string{core.MirrorPodAnnotationKey: "static"}
	s := newScene(t, pod("n1", "u1", core.PodSucceeded), pod("n2", "u2", core.PodFailed), pod("n1", "u3", core.PodRunning),
		pod("n1", "u4", core.PodUnknown), noVolumes, noNode, mirror)
	s.run()
	s.wantTold("n1 u1 Succeeded [scratch]", "n2 u2 Failed [scratch]", "n1 static Failed [scratch]")
	s.eventually("a source that is up", func() bool { return s.metric("katbox_gateway_outcome_source_up") == 1 })
	ended := pod("n1", "u3", core.PodFailed)
	s.eventually("a watch", func() bool { return s.asked("watch") > 0 })
	if _, err := s.client.CoreV1().Pods("ci").UpdateStatus(t.Context(), ended, meta.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wantTold("n1 u3 Failed [scratch]")
	for _, action := range s.client.Actions() {
		var selector string
		switch a := action.(type) {
		case clienttesting.ListActionImpl:
			selector = a.ListRestrictions.Fields.String()
		case clienttesting.WatchActionImpl:
			selector = a.WatchRestrictions.Fields.String()
		default:
			continue
		}
		if selector != "status.phase!=Running,status.phase!=Pending" && selector != "status.phase!=Pending,status.phase!=Running" {
			t.Errorf("%s asks for %q", action.GetVerb(), selector)
		}
	}
}

// TestToldToGo: a node is told that a pod was stopped which ended by the signal that told it to go, with all that
// speaks against it.
func TestToldToGo(t *testing.T) {
	gone, grace := meta.Unix(1_800_000_030, 0), int64(30)
	ended := func(code int32, second int64) core.ContainerState {
		return core.ContainerState{Terminated: &core.ContainerStateTerminated{
			ExitCode: code, FinishedAt: meta.Unix(1_800_000_000+second, 0), Reason: "Error",
		}}
	}
	waits := core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "PodInitializing"}}
	outOfMemory := ended(143, 1)
	outOfMemory.Terminated.Reason = "OOMKilled"
	for name, tt := range map[string]struct {
		status core.PodStatus
		want   string
	}{
		"ends by the signal": {core.PodStatus{ContainerStatuses: []core.ContainerStatus{{State: ended(143, 1)}}}, "Stopped"},
		"not begun": {core.PodStatus{
			InitContainerStatuses: []core.ContainerStatus{{State: ended(143, 1)}}, ContainerStatuses: []core.ContainerStatus{{State: waits}},
		}, "Stopped"},
		"failed before": {core.PodStatus{ContainerStatuses: []core.ContainerStatus{
			{State: ended(143, 1), LastTerminationState: ended(1, -100)},
		}}, "Failed"},
		"restarting": {core.PodStatus{ContainerStatuses: []core.ContainerStatus{
			{State: ended(143, 1)}, {State: waits, LastTerminationState: ended(0, -100)},
		}}, "Failed"},
		"evicted":       {core.PodStatus{Reason: "Evicted", ContainerStatuses: []core.ContainerStatus{{State: ended(143, 1)}}}, "Failed"},
		"out of memory": {core.PodStatus{ContainerStatuses: []core.ContainerStatus{{State: outOfMemory}}}, "Failed"},
		"another failed": {core.PodStatus{
			ContainerStatuses:          []core.ContainerStatus{{State: ended(143, 1)}},
			EphemeralContainerStatuses: []core.ContainerStatus{{State: ended(2, 1)}},
		}, "Failed"},
	} {
		p := pod("n1", "u1", core.PodFailed)
		p.Status, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = tt.status, &gone, &grace
		p.Status.Phase = core.PodFailed
		if got, ok := ofPod(p); !ok || got.Outcome != tt.want {
			t.Errorf("%s: %q, %v, want %s", name, got.Outcome, ok, tt.want)
		}
	}
}

func (s *scene) asked(verb string) (n int) {
	for _, a := range s.client.Actions() {
		if a.GetVerb() == verb {
			n++
		}
	}
	return n
}

func (s *scene) eventually(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not in time", what)
		}
	}
}

// TestWatchBreaks: pods that have ended meanwhile are found by a list, page by page, and so is one that is deleted while it is watched.
func TestWatchBreaks(t *testing.T) {
	s := newScene(t)
	lists := 0
	s.client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		lists++
		options := a.(clienttesting.ListActionImpl).ListOptions
		if options.Limit != page || options.ResourceVersion != "" {
			t.Errorf("the list is asked for with %+v", options)
		}
		return true, &core.PodList{Items: []core.Pod{*pod("n1", fmt.Sprint("u", lists), core.PodFailed)}}, nil
	})
	s.client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewRaceFreeFake()
		if lists == 1 {
			w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		} else {
			w.Delete(pod("n1", "last", core.PodSucceeded))
		}
		return true, w, nil
	})
	s.run()
	s.wantTold("n1 u1 Failed [scratch]", "n1 u2 Failed [scratch]", "n1 last Succeeded [scratch]")
}

// how is an outcome of a pod.
func how(uid string) api.PodOutcome {
	return api.PodOutcome{PodUID: uid, Outcome: "Failed", Volumes: []string{"a"}}
}

// TestConnects: a node that was away is told when it connects, and again with each connection.
func TestConnects(t *testing.T) {
	s := newScene(t)
	s.nodes.away["n1"] = true
	asked := make(chan struct{}, 100)
	s.nodes.full = func(string, api.Outcomes) { asked <- struct{}{} }
	s.add("n1", how("u1"))
	<-asked
	s.idle("n1")
	s.add("n1", how("u1"))
	s.nodes.set(func() { s.nodes.away["n1"] = false })
	s.Connected("n1")
	s.wantTold("n1 u1 Failed [a]")
	s.add("n1", how("u2"))
	s.wantTold("n1 u2 Failed [a]")
	s.Connected("n1")
	s.wantTold("n1 u1 Failed [a]", "n1 u2 Failed [a]")
	s.Connected("n2")
	s.idle("n1")
	if len(s.nodes.told) > 0 {
		t.Errorf("also told: %s", <-s.nodes.told)
	}
}

// idle waits until nothing is being told to a node.
func (s *scene) idle(node string) {
	s.t.Helper()
	s.eventually("idle", func() bool {
		s.Outcomes.mu.Lock()
		defer s.Outcomes.mu.Unlock()
		r := s.Outcomes.nodes[node]
		return r == nil || !r.telling
	})
}

// TestAnswers: what a node did not take for now is told again, what it refuses is not; and no node waits
// for another.
func TestAnswers(t *testing.T) {
	s := newScene(t)
	busy := errors.New("busy")
	s.nodes.errs["n1"] = []error{busy, busy}
	s.nodes.errs["n2"] = []error{fmt.Errorf("%w: old", ErrRefused)}
	s.add("n1", how("u1"))
	s.add("n2", how("u2"))
	s.wantTold("n1 u1 Failed [a]")
	s.idle("n2")
	s.add("n2", how("u3"))
	s.wantTold("n2 u3 Failed [a]")

	hung, release := make(chan struct{}), make(chan struct{})
	slow := &hanging{nodes: s.nodes, hung: hung, release: release}
	s.Nodes = slow
	s.add("n1", how("u4"))
	<-hung
	s.add("n2", how("u5"))
	s.wantTold("n2 u5 Failed [a]")
	// It connects anew while it is told on the old connection: all is told again.
	s.Connected("n1")
	close(release)
	s.wantTold("n1 u4 Failed [a]", "n1 u1 Failed [a]", "n1 u4 Failed [a]")
}

// hanging is a node that takes its time once.
type hanging struct {
	*nodes
	once          sync.Once
	hung, release chan struct{}
}

func (h *hanging) Tell(ctx context.Context, node string, o api.Outcomes) error {
	if node == "n1" {
		h.once.Do(func() {
			close(h.hung)
			<-h.release
		})
	}
	return h.nodes.Tell(ctx, node, o)
}

// TestBatches: many outcomes are told in requests of a bounded size, in their order.
func TestBatches(t *testing.T) {
	s := newScene(t)
	s.nodes.away["n1"] = true
	s.add("n1", how("u0"))
	s.idle("n1")
	var want []string
	for i := range 2*batch + 1 {
		s.add("n1", how(fmt.Sprint("u", i)))
		want = append(want, fmt.Sprintf("n1 u%d Failed [a]", i))
	}
	s.idle("n1")
	s.nodes.set(func() {
		s.nodes.away["n1"] = false
		s.nodes.full = func(_ string, o api.Outcomes) {
			if len(o.Items) > batch {
				t.Errorf("%d at once", len(o.Items))
			}
		}
	})
	s.Connected("n1")
	s.wantTold(want...)
}

// TestMemory: what is remembered of one node, of all, and for how long, is bounded.
func TestMemory(t *testing.T) {
	s := newScene(t)
	const mostOfNode, mostInAll = 20, 500
	s.limits = limits{ofNode: mostOfNode, inAll: mostInAll}
	for n := range 60 {
		s.nodes.away[fmt.Sprint("n", n)] = true
	}
	for i := range mostOfNode + 50 {
		s.add("n0", how(fmt.Sprint("u", i)))
	}
	if n := len(s.Outcomes.nodes["n0"].items); n != mostOfNode {
		t.Errorf("%d are remembered of a node", n)
	}
	for i := range mostOfNode {
		for n := range 60 {
			s.add(fmt.Sprint("n", n), how(fmt.Sprint("v", n, "-", i)))
		}
	}
	count, known := 0, 0
	for _, r := range s.Outcomes.nodes {
		count, known = count+len(r.items), known+len(r.known)
	}
	if count != s.count || count != mostInAll || known != count || len(s.order) > 2*mostInAll {
		t.Errorf("%d are remembered, %d counted, %d known, %d in order", count, s.count, known, len(s.order))
	}
	for n := range 60 {
		s.idle(fmt.Sprint("n", n))
	}
	s.forgetBefore(time.Now().Add(-memory))
	if s.count != mostInAll {
		t.Errorf("%d are left before their time", s.count)
	}
	s.forgetBefore(time.Now())
	if s.count != 0 || len(s.order) != 0 || len(s.Outcomes.nodes) != 0 {
		t.Errorf("%d are left of %d nodes, %d in order", s.count, len(s.Outcomes.nodes), len(s.order))
	}
}

// TestEnded: each pod is passed on once, and whether there is none of it any more.
func TestEnded(t *testing.T) {
	s := newScene(t)
	var got []string
	s.Ended = func(pod *core.Pod, deleted bool) { got = append(got, fmt.Sprint(pod.Name, " ", deleted)) }
	noVolumes := pod("n1", "u4", core.PodFailed)
	noVolumes.Spec.Volumes = nil
	s.see(pod("n1", "u1", core.PodFailed), false)
	s.see(pod("n1", "u1", core.PodFailed), true)
	s.see(pod("n1", "u2", core.PodSucceeded), true)
	s.see(pod("n1", "u3", core.PodRunning), false)
	s.see(noVolumes, false)
	if want := []string{"pod-u1 false", "pod-u2 true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEnds: how a pod ended is told the nodes that keep it, under the UID that the kubelet calls the pod by. Of others it takes
// no memory.
func TestEnds(t *testing.T) {
	s := newScene(t)
	s.nodes.endless = map[string]bool{"n2": true}
	told := make(chan string, 10)
	s.nodes.full = func(node string, o api.Outcomes) {
		for _, item := range o.Items {
			told <- fmt.Sprintf("%s %s %.100s", node, item.PodUID, item.End)
		}
	}
	mirror := pod("n1", "u1", core.PodFailed)
	mirror.Annotations = map[string]string{core.MirrorPodAnnotationKey: "static"}
	for _, p := range []*core.Pod{mirror, pod("n2", "u2", core.PodFailed)} {
		s.see(p, false)
		s.see(p, true)
	}
	got := []string{<-told, <-told}
	slices.Sort(got)
	const end = `{"namespace":"ci","name":"pod-u1","uid":"static"`
	if !strings.HasPrefix(got[0], "n1 static "+end) || got[1] != "n2 u2 " {
		t.Errorf("told %q", got)
	}
	s.idle("n1")
	s.idle("n2")
	if len(told) > 0 {
		t.Errorf("told again: %s", <-told)
	}
}

// TestClose: nothing is told afterwards.
func TestClose(t *testing.T) {
	s := newScene(t)
	s.Close()
	s.add("n1", how("u1"))
	s.Connected("n1")
	if len(s.nodes.told) > 0 {
		t.Error("a node is told")
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration is accepted")
	}
}

// TestDrivers: a node is told of which driver each volume is.
func TestDrivers(t *testing.T) {
	p := pod("n1", "u1", core.PodFailed)
	p.Spec.Volumes = append(p.Spec.Volumes, core.Volume{
		Name: "other", VolumeSource: core.VolumeSource{CSI: &core.CSIVolumeSource{Driver: "e"}},
	})
	if o, ok := ofPod(p); !ok || fmt.Sprint(o.Volumes, o.Drivers) != "[scratch other] [d e]" {
		t.Errorf("%t: %q are of %q", ok, o.Volumes, o.Drivers)
	}
}
