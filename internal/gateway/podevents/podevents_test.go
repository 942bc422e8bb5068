package podevents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

const driver = "katbox.csi.paypal.com"

func inline(name, driver string, attributes map[string]string) core.Volume {
	return core.Volume{Name: name, VolumeSource: core.VolumeSource{CSI: &core.CSIVolumeSource{Driver: driver, VolumeAttributes: attributes}}}
}

// failed is a pod with a Katbox volume that has failed just now.
func failed(namespace, name string) *core.Pod {
	p := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Spec:       core.PodSpec{NodeName: "n1", Volumes: []core.Volume{{Name: "empty"}, inline("scratch", driver, nil)}},
	}
	p.Status.Phase = core.PodFailed
	p.Status.ContainerStatuses = []core.ContainerStatus{{State: core.ContainerState{
		Terminated: &core.ContainerStateTerminated{ExitCode: 1, FinishedAt: meta.Now()},
	}}}
	return p
}

func ofJob(p *core.Pod) {
	p.OwnerReferences = []meta.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "nightly", UID: "j1", Controller: new(true)}}
}

func going(p *core.Pod) { p.DeletionTimestamp = new(meta.Now()) }

// namespaces play the namespaces: those that want no events.
type namespaces struct {
	synced atomic.Bool
	quiet  string
}

func (n *namespaces) Synced() bool                 { return n.synced.Load() }
func (n *namespaces) NoPodEvents(name string) bool { return n.synced.Load() && name == n.quiet }

// scene is the cluster of some Events.
type scene struct {
	t          *testing.T
	client     *fake.Clientset
	namespaces *namespaces
	m          *gatewaymetrics.Metrics

	mu  sync.Mutex
	log []string
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, client: fake.NewClientset(), namespaces: &namespaces{quiet: "quiet"}, m: gatewaymetrics.New("v", "r")}
	s.namespaces.synced.Store(true)
	return s
}

// start starts a replica, until the test ends.
func (s *scene) start() *Events {
	s.t.Helper()
	e, err := New(Config{Client: s.client.CoreV1(), Namespaces: s.namespaces, Driver: driver, Metrics: s.m, Log: funcr.New(
		func(_, line string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.log = append(s.log, line)
		}, funcr.Options{})})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	e.Start(ctx)
	s.t.Cleanup(func() {
		cancel()
		e.Wait()
	})
	return e
}

// written returns the events, each as "NAMESPACE/KIND/NAME MESSAGE".
func (s *scene) written() (all []string) {
	s.t.Helper()
	events, err := s.client.CoreV1().Events("").List(s.t.Context(), meta.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range events.Items {
		o := e.InvolvedObject
		all = append(all, fmt.Sprintf("%s/%s/%s %s", o.Namespace, o.Kind, o.Name, e.Message))
	}
	return all
}

// wantCounted compares what is counted; what is not named is 0.
func (s *scene) wantCounted(want map[string]float64) {
	s.t.Helper()
	all := metricstest.Values{}
	for _, outcome := range []string{"written", "known", "limited", "gone", "failed"} {
		all[`katbox_gateway_pod_events_total{outcome="`+outcome+`"}`] = want[outcome]
	}
	metricstest.Of(s.t, s.m).Want(s.t, "events", all)
}

// refuse answers each request for an event with an error, and returns how many there were.
func (s *scene) refuse(err error) *atomic.Int64 {
	count := new(atomic.Int64)
	s.client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		count.Add(1)
		return true, nil, err
	})
	return count
}

// TestEvents: which pods get one, and on what.
func TestEvents(t *testing.T) {
	const says = " The files of volume scratch are kept for a while after the pod. To see them: " +
		"kubectl katbox ls -n ci pod/x; until when: kubectl katbox list -n ci pod/x"
	for name, tt := range map[string]struct {
		change  func(*core.Pod)
		deleted bool
		want    string
	}{
		"failed":           {want: "ci/Pod/x" + says},
		"succeeded":        {change: func(p *core.Pod) { p.Status.Phase = core.PodSucceeded }},
		"running":          {change: func(p *core.Pod) { p.Status.Phase = core.PodRunning }},
		"lost":             {change: func(p *core.Pod) { p.Status.Phase = core.PodUnknown }},
		"never on a node":  {change: func(p *core.Pod) { p.Spec.NodeName = "" }},
		"no Katbox volume": {change: func(p *core.Pod) { p.Spec.Volumes = []core.Volume{{Name: "empty"}, inline("other", "x", nil)} }},
		"attached": {change: func(p *core.Pod) {
			p.Spec.Volumes[1] = inline("old", driver, map[string]string{api.KeyAttach: "u/v"})
		}},
		"never kept": {change: func(p *core.Pod) {
			p.Spec.Volumes[1] = inline("scratch", driver, map[string]string{api.KeyRetain: volume.RetainNever.String()})
		}},
		"two volumes": {change: func(p *core.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, inline("out", driver, map[string]string{api.KeyRetain: volume.RetainOnFailure.String()}))
		}, want: "ci/Pod/x" + strings.Replace(says, "volume scratch", "volumes scratch, out", 1)},
		"evicted, without the end of a container": {change: func(p *core.Pod) {
			p.Status.Reason, p.Status.ContainerStatuses = "Evicted", nil
			p.Status.Conditions = []core.PodCondition{{Type: core.DisruptionTarget, Status: core.ConditionTrue, LastTransitionTime: meta.Now()}}
		}, want: "ci/Pod/x" + says},
		"of a Job":        {change: ofJob, want: "ci/Pod/x" + says},
		"of a Job, going": {change: func(p *core.Pod) { ofJob(p); going(p) }, want: "ci/Job/nightly" + says},
		"of a Job, gone":  {change: ofJob, deleted: true, want: "ci/Job/nightly" + says},
		"going":           {change: going},
		"gone":            {deleted: true},
		"going, of another kind of Job": {change: func(p *core.Pod) {
			ofJob(p)
			going(p)
			p.OwnerReferences[0].APIVersion = "x.example.com/v1"
		}},
		"going, of a ReplicaSet":         {change: func(p *core.Pod) { ofJob(p); going(p); p.OwnerReferences[0].Kind = "ReplicaSet" }},
		"in a namespace that wants none": {change: func(p *core.Pod) { p.Namespace = "quiet" }},
		"a clock that is late": {change: func(p *core.Pod) {
			p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = meta.NewTime(time.Now().Add(-fresh))
		}, want: "ci/Pod/x" + says},
		"long ago": {change: func(p *core.Pod) {
			p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = meta.NewTime(time.Now().Add(-fresh - time.Second))
		}},
		"a clock of tomorrow": {change: func(p *core.Pod) {
			p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = meta.NewTime(time.Now().Add(24 * time.Hour))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				p := failed("ci", "x")
				if tt.change != nil {
					tt.change(p)
				}
				s.start().Ended(p, tt.deleted)
				synctest.Wait()
				if got := strings.Join(s.written(), "\n"); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// TestHostileController: whoever makes a pod writes who its controller is. What cannot be a Job gets no event, so
// none of them is large: some wait in memory.
func TestHostileController(t *testing.T) {
	long := strings.Repeat("a", 250<<10)
	for name, change := range map[string]func(*meta.OwnerReference){
		"a long version":         func(o *meta.OwnerReference) { o.APIVersion = "batch/" + long },
		"a long name":            func(o *meta.OwnerReference) { o.Name = long },
		"a name of 254 bytes":    func(o *meta.OwnerReference) { o.Name = long[:254] },
		"a long UID":             func(o *meta.OwnerReference) { o.UID = types.UID(long) },
		"no name":                func(o *meta.OwnerReference) { o.Name = "" },
		"no UID":                 func(o *meta.OwnerReference) { o.UID = "" },
		"a name of no object":    func(o *meta.OwnerReference) { o.Name = "../x" },
		"what cannot be printed": func(o *meta.OwnerReference) { o.UID = "\x1b[2J" },
		"no text":                func(o *meta.OwnerReference) { o.UID = "\xff" },
	} {
		p := failed("ci", "x")
		ofJob(p)
		change(&p.OwnerReferences[0])
		if e := eventOf(p, true, driver, time.Now()); e != nil {
			t.Errorf("%s: an event on %.300q", name, e.InvolvedObject.Name)
		}
		if e := eventOf(p, false, driver, time.Now()); e == nil || e.InvolvedObject.Kind != "Pod" {
			t.Errorf("%s: none on the pod itself: %v", name, e)
		}
	}
	p := failed("ci", "x")
	ofJob(p)
	p.OwnerReferences[0].Name = long[:253]
	if e := eventOf(p, true, driver, time.Now()); e == nil || e.InvolvedObject.Name != long[:253] {
		t.Errorf("the longest name: %v", e)
	}
}

// TestEventIsWhole: what kubectl shows of it is there, and the name is that of no other pod's.
func TestEventIsWhole(t *testing.T) {
	now := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	p := failed("ci", "x")
	p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = meta.NewTime(now)
	e := eventOf(p, false, driver, now)
	if e == nil || e.Name != "katbox-uid-x" || e.Namespace != "ci" || e.Type != core.EventTypeNormal || e.Reason != "FilesKept" ||
		e.Source.Component != "katbox-gateway" || e.Count != 1 || !e.FirstTimestamp.Time.Equal(now) || !e.LastTimestamp.Time.Equal(now) ||
		e.InvolvedObject.UID != "uid-x" || e.InvolvedObject.APIVersion != "v1" {
		t.Errorf("got %+v", e)
	}
}

// TestLongNames: a message stays as short as one may be, and its commands are whole.
func TestLongNames(t *testing.T) {
	namespace, pod := strings.Repeat("n", 63), strings.Repeat("p", 253)
	var volumes []string
	for range 200 {
		volumes = append(volumes, strings.Repeat("v", 63))
	}
	text := message(namespace, pod, volumes)
	if len(text) > mostMessage || !strings.HasSuffix(text, " kubectl katbox list -n "+namespace+" pod/"+pod) ||
		!strings.HasPrefix(text, "The files of 200 volumes are kept") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestRestartRepeatsNothing: neither a replica beside the first one nor a later one writes it again.
func TestRestartRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		for range 3 {
			s.start().Ended(failed("ci", "x"), false)
			synctest.Wait()
		}
		if got := s.written(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		s.wantCounted(map[string]float64{"written": 1, "known": 2})
	})
}

// TestNamespaceIsLimited: a namespace has its burst, then one now and then, and others have theirs.
func TestNamespaceIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		e := s.start()
		for n := range namespaceBurst + 5 {
			e.Ended(failed("ci", fmt.Sprint("x", n)), false)
		}
		e.Ended(failed("other", "y"), false)
		synctest.Wait()
		s.wantCounted(map[string]float64{"written": namespaceBurst + 1, "limited": 5})
		time.Sleep(namespaceEvery)
		for n := range 3 {
			e.Ended(failed("ci", fmt.Sprint("z", n)), false)
		}
		synctest.Wait()
		s.wantCounted(map[string]float64{"written": namespaceBurst + 2, "limited": 7})
	})
}

// TestGatewayIsLimited: with as many namespaces as one likes.
func TestGatewayIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		e := s.start()
		for n := range burst + 7 {
			e.Ended(failed(fmt.Sprint("n", n), "x"), false)
		}
		synctest.Wait()
		s.wantCounted(map[string]float64{"written": burst, "limited": 7})
		time.Sleep(time.Second)
		for n := range perSecond + 2 {
			e.Ended(failed(fmt.Sprint("m", n), "x"), false)
		}
		synctest.Wait()
		s.wantCounted(map[string]float64{"written": burst + perSecond, "limited": 9})
	})
}

// TestWaitsForNamespaces: before these are known nothing is written, since one may want none. What is too
// much meanwhile is dropped, and whoever says that a pod has ended does not wait.
func TestWaitsForNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.namespaces.synced.Store(false)
		e := s.start()
		e.Ended(failed("quiet", "x"), false)
		e.Ended(failed("ci", "x"), false)
		for n := range mostWaiting {
			e.Ended(failed("quiet", fmt.Sprint("y", n)), false)
		}
		time.Sleep(time.Minute)
		if got := s.written(); len(got) > 0 {
			t.Errorf("written too early: %q", got)
		}
		s.namespaces.synced.Store(true)
		time.Sleep(syncInterval)
		synctest.Wait()
		s.wantCounted(map[string]float64{"written": 1, "limited": 2})
	})
}

// TestRefusals: what the API server does not take is not tried again, counted as what it is, and logged
// once in a while.
func TestRefusals(t *testing.T) {
	events := schema.GroupResource{Resource: "events"}
	terminating := apierrors.NewForbidden(events, "x", errors.New("namespace ci is being terminated"))
	terminating.ErrStatus.Details.Causes = []meta.StatusCause{{Type: core.NamespaceTerminatingCause}}
	for outcome, tt := range map[string]struct {
		err  error
		logs bool
	}{
		"failed": {apierrors.NewForbidden(events, "x", errors.New("no right")), true},
		"gone":   {terminating, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			requests := s.refuse(tt.err)
			e := s.start()
			for n := range 3 {
				e.Ended(failed("ci", fmt.Sprint("x", n)), false)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			s.wantCounted(map[string]float64{outcome: 3})
			if requests.Load() != 3 {
				t.Errorf("%s: %d requests for 3 pods", outcome, requests.Load())
			}
			logged := slices.Clone(s.log)
			if len(logged) != map[bool]int{true: 1}[tt.logs] || tt.logs && !strings.Contains(logged[0], "no right") {
				t.Errorf("%s: the log is %q", outcome, logged)
			}
			e.Ended(failed("ci", "y"), false)
			synctest.Wait()
			if len(s.log) != 2*len(logged) {
				t.Errorf("%s: an hour later the log is %q", outcome, s.log)
			}
		})
	}
}

// TestSilence: an API server that does not answer holds up nobody, and the gateway stops all the same.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		began, answer := make(chan struct{}), make(chan struct{})
		s.client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			began <- struct{}{}
			<-answer
			return true, nil, context.DeadlineExceeded
		})
		e := s.start()
		e.Ended(failed("ci", "first"), false)
		<-began
		for n := range mostWaiting + 9 {
			e.Ended(failed("ci", fmt.Sprint("x", n)), false) // returns
		}
		s.wantCounted(map[string]float64{"limited": 9})
		go func() {
			for range began {
			}
		}()
		close(answer)
		synctest.Wait()
		s.wantCounted(map[string]float64{"failed": namespaceBurst, "limited": 9 + mostWaiting + 1 - namespaceBurst})
		close(began)
	})
}

// TestConfig: each field that is required.
func TestConfig(t *testing.T) {
	whole := Config{Client: fake.NewClientset().CoreV1(), Namespaces: &namespaces{}, Driver: driver}
	for field, change := range maps.All(map[string]func(*Config){
		"Client":     func(c *Config) { c.Client = nil },
		"Namespaces": func(c *Config) { c.Namespaces = nil },
		"Driver":     func(c *Config) { c.Driver = "" },
	}) {
		c := whole
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("without %s: %v", field, err)
		}
	}
}
