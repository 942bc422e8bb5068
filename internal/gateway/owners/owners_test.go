package owners

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// namespaces are those that there are, with their UIDs.
type namespaces struct {
	uids map[string]string
	err  error
	// onLookup is called before each answer.
	onLookup func()
}

func (n *namespaces) Lookup(_ context.Context, namespace string) (volume.Tenancy, bool, error) {
	if n.onLookup != nil {
		n.onLookup()
	}
	uid, ok := n.uids[namespace]
	return volume.Tenancy{UID: uid}, ok, n.err
}

func pod(namespace, name, uid, node string) *core.Pod {
	yes := true
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(uid),
			Labels:      map[string]string{"batch.kubernetes.io/job-name": "nightly", "job-name": "other", "x": "y"},
			Annotations: map[string]string{"batch.kubernetes.io/job-completion-index": "7"},
			OwnerReferences: []meta.OwnerReference{
				{Kind: "Other", Name: "o", UID: "ou"}, {Kind: "Job", Name: "nightly", UID: "ju", Controller: &yes},
			},
		},
		Spec: core.PodSpec{NodeName: node},
	}
}

// stage is an Owners and its API server.
type stage struct {
	*Owners
	t          *testing.T
	client     *fake.Clientset
	namespaces *namespaces
}

func newStage(t *testing.T, pods ...runtime.Object) *stage {
	s := &stage{t: t, client: fake.NewClientset(pods...), namespaces: &namespaces{uids: map[string]string{"ci": "ns-ci", "prod": "ns-prod"}}}
	o, err := New(Config{Pods: s.client.CoreV1(), Namespaces: s.namespaces})
	if err != nil {
		t.Fatal(err)
	}
	s.Owners = o
	return s
}

// one asks one question.
func (s *stage) one(node, namespace, pod, uid string) (api.Owner, bool) {
	s.t.Helper()
	answers := s.Ask(s.t.Context(), node, []api.OwnerAsk{{ID: "v", Namespace: namespace, Pod: pod, PodUID: uid}})
	if len(answers) == 0 {
		return api.Owner{}, false
	}
	if len(answers) > 1 || answers[0].ID != "v" || answers[0].PodUID != uid {
		s.t.Errorf("answers are %+v", answers)
	}
	return answers[0].Owner, true
}

// reads is how often a pod was read.
func (s *stage) reads() int {
	n := 0
	for _, a := range s.client.Actions() {
		if a.GetVerb() == "get" {
			n++
		}
	}
	return n
}

// nightly is the owner of what pod makes.
var nightly = api.Owner{
	Verdict: "Confirmed", NamespaceUID: "ns-ci", Kind: "Job", Name: "nightly", UID: "ju", Job: "nightly", JobIndex: "7",
}

// TestAsk: an owner is confirmed only for the pod, namespace and node that the API server says.
func TestAsk(t *testing.T) {
	denied := api.Owner{Verdict: "Denied"}
	bare := pod("ci", "bare", "u2", "n1")
	bare.Labels, bare.Annotations, bare.OwnerReferences = nil, nil, nil
	old := pod("ci", "old", "u3", "n1")
	delete(old.Labels, "batch.kubernetes.io/job-name")
	mirror := pod("ci", "static", "u4", "n1")
	mirror.Annotations["kubernetes.io/config.mirror"] = "hash"
	withJob := nightly
	withJob.Job = "other"
	for _, tt := range []struct {
		name, node, namespace, pod, uid string
		want                            api.Owner
	}{
		{"a pod of a job", "n1", "ci", "p", "u1", nightly},
		{"a pod of nobody", "n1", "ci", "bare", "u2", api.Owner{Verdict: "Confirmed", NamespaceUID: "ns-ci"}},
		{"a Job of an old cluster", "n1", "ci", "old", "u3", withJob},
		{"a static pod", "n1", "ci", "static", "hash", nightly},
		{"another node", "n2", "ci", "p", "u1", denied},
		{"another UID", "n1", "ci", "p", "u9", denied},
		{"another namespace", "n1", "prod", "p", "u1", denied},
		{"no such pod", "n1", "ci", "gone", "u1", denied},
		{"no namespace", "n1", "", "p", "u1", denied},
		{"no pod", "n1", "ci", "", "u1", denied},
		{"no UID", "n1", "ci", "p", "", denied},
		{"a path as namespace", "n1", "..", "p", "u1", denied},
		{"a path as pod", "n1", "ci", "../../nodes/n1", "u1", denied},
		{"a long UID", "n1", "ci", "p", strings.Repeat("u", 1000), denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, pod("ci", "p", "u1", "n1"), bare, old, mirror)
			for range 2 {
				if got, ok := s.one(tt.node, tt.namespace, tt.pod, tt.uid); !ok || got != tt.want {
					t.Errorf("got %+v, %v", got, ok)
				}
			}
			if n := s.reads(); n > 1 {
				t.Errorf("the pod was read %d times", n)
			}
		})
	}
}

// TestLiesAreNotRemembered: what one node says about a pod changes nothing for the node that has it.
func TestLiesAreNotRemembered(t *testing.T) {
	s := newStage(t, pod("ci", "p", "u1", "n1"), pod("prod", "q", "u2", "n2"))
	for _, lie := range [][4]string{{"n2", "ci", "p", "u1"}, {"n2", "prod", "q", "u1"}, {"n2", "prod", "p", "u1"}, {"n1", "prod", "q", "u1"}} {
		if got, ok := s.one(lie[0], lie[1], lie[2], lie[3]); !ok || got.Verdict != "Denied" {
			t.Errorf("%q: %+v, %v", lie, got, ok)
		}
	}
	if got, ok := s.one("n1", "ci", "p", "u1"); !ok || got != nightly {
		t.Errorf("got %+v, %v", got, ok)
	}
	if got, ok := s.Verdict("u1", "n1"); !ok || got != nightly {
		t.Errorf("the verdict is %+v, %v", got, ok)
	}
	if got, ok := s.Verdict("u1", "n2"); !ok || got.Verdict != "Denied" {
		t.Errorf("the verdict for another node is %+v, %v", got, ok)
	}
	if got, ok := s.Verdict("u2", "n2"); ok {
		t.Errorf("a verdict that nobody asked for: %+v", got)
	}
}

// TestStaticPodOfALiar: a node may make a mirror of a static pod that it does not run, with the UID of
// any pod. What is known by that UID changes nothing for other nodes.
func TestStaticPodOfALiar(t *testing.T) {
	mirror := pod("prod", "static", "u7", "liar")
	mirror.Annotations["kubernetes.io/config.mirror"] = "u1"
	s := newStage(t, pod("ci", "p", "u1", "n1"), mirror)
	if got, ok := s.one("liar", "prod", "static", "u1"); !ok || got.NamespaceUID != "ns-prod" {
		t.Errorf("the liar's own: %+v, %v", got, ok)
	}
	if got, ok := s.Verdict("u1", "n1"); ok {
		t.Errorf("the verdict before the node has asked is %+v", got)
	}
	if got, ok := s.one("n1", "ci", "p", "u1"); !ok || got != nightly {
		t.Errorf("got %+v, %v", got, ok)
	}
	if got, ok := s.Verdict("u1", "n1"); !ok || got != nightly {
		t.Errorf("the verdict is %+v, %v", got, ok)
	}
	// What the API server calls a pod by beats the annotation.
	if got, ok := s.Verdict("u1", "liar"); !ok || got.Verdict != "Denied" {
		t.Errorf("the verdict for the liar is %+v, %v", got, ok)
	}
}

// TestRemembered: the pod may go, its owner is remembered; several volumes of a pod cost one question.
func TestRemembered(t *testing.T) {
	s := newStage(t, pod("ci", "p", "u1", "n1"))
	asks := make([]api.OwnerAsk, 20)
	for i := range asks {
		asks[i] = api.OwnerAsk{ID: fmt.Sprint(i), Namespace: "ci", Pod: "p", PodUID: "u1"}
	}
	answers := s.Ask(t.Context(), "n1", asks)
	if len(answers) != 20 || answers[19].ID != "19" || s.reads() != 1 {
		t.Errorf("%d answers with %d reads", len(answers), s.reads())
	}
	if err := s.client.CoreV1().Pods("ci").Delete(t.Context(), "p", meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.one("n1", "ci", "p", "u1"); !ok || got != nightly {
		t.Errorf("got %+v, %v", got, ok)
	}
}

// TestNoAnswer: what cannot be found out now is not answered, and not remembered either.
func TestNoAnswer(t *testing.T) {
	s := newStage(t, pod("ci", "p", "u1", "n1"), pod("new", "q", "u2", "n1"))
	down := true
	s.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if down {
			return true, nil, apierrors.NewServiceUnavailable("down")
		}
		return false, nil, nil
	})
	if got, ok := s.one("n1", "ci", "p", "u1"); ok {
		t.Errorf("without an API server: %+v", got)
	}
	down = false
	if got, ok := s.one("n1", "new", "q", "u2"); ok {
		t.Errorf("in a namespace that is not known: %+v", got)
	}
	s.namespaces.err = errors.New("down")
	if got, ok := s.one("n1", "ci", "p", "u1"); ok {
		t.Errorf("without namespaces: %+v", got)
	}
	s.namespaces.err = nil
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := s.Ask(ended, "n1", []api.OwnerAsk{{ID: "v", Namespace: "ci", Pod: "p", PodUID: "u1"}}); len(got) != 0 {
		t.Errorf("without time: %+v", got)
	}
	s.namespaces.uids["new"] = "ns-new"
	for _, uid := range []string{"u1", "u2"} {
		q := map[string][2]string{"u1": {"ci", "p"}, "u2": {"new", "q"}}[uid]
		if got, ok := s.one("n1", q[0], q[1], uid); !ok || got.Verdict != "Confirmed" {
			t.Errorf("afterwards %s: %+v, %v", uid, got, ok)
		}
	}
}

// TestNamespaceMadeAgain: a pod of a namespace that is deleted and made again while it is read is not
// taken for one of the new namespace.
func TestNamespaceMadeAgain(t *testing.T) {
	s := newStage(t, pod("ci", "p", "u1", "n1"))
	lookups := 0
	s.namespaces.onLookup = func() {
		if lookups++; lookups == 2 {
			s.namespaces.uids["ci"] = "ns-ci-2"
		}
	}
	if got, ok := s.one("n1", "ci", "p", "u1"); ok {
		t.Errorf("got %+v", got)
	}
	if got, ok := s.Verdict("u1", "n1"); ok {
		t.Errorf("the verdict is %+v", got)
	}
}

// TestBounds: memory is bounded, and so is the rate.
func TestBounds(t *testing.T) {
	s := newStage(t)
	if s.Owners.reads.Limit() != 200 || s.Owners.reads.Burst() > 50 {
		t.Errorf("the limit is %v with a burst of %d", s.Owners.reads.Limit(), s.Owners.reads.Burst())
	}
	m := newMemory(10, 1<<20, func(int, int) int { return 1 })
	for i := range 1000 {
		m.put(i, i)
		if v, ok := m.get(0); !ok || v != 0 {
			t.Fatalf("after %d others, what is always used is forgotten", i)
		}
		if n := len(m.young) + len(m.old); n > 10 {
			t.Fatalf("%d values are kept", n)
		}
	}
	if _, ok := m.get(999); !ok {
		t.Error("the last one is forgotten")
	}
	if _, ok := m.get(500); ok {
		t.Error("an old one is not forgotten")
	}
	m.put(999, 7)
	if v, _ := m.get(999); v != 7 {
		t.Errorf("got %d", v)
	}
}

// TestNew: a configuration that lacks something is refused.
func TestNew(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration is accepted")
	}
}
