package owners

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// controlledBy is a pod with a controller, and with an index of a Job.
func controlledBy(uid, kind, name, controllerUID, index string) *core.Pod {
	p := pod("ci", "pod-"+uid, uid, "n1")
	p.OwnerReferences = []meta.OwnerReference{{Kind: kind, Name: name, UID: types.UID(controllerUID), Controller: new(true)}}
	p.Annotations["batch.kubernetes.io/job-completion-index"] = index
	return p
}

// TestTextsOfPods: of what a pod says no more is taken than a node takes, and none of it for something else.
func TestTextsOfPods(t *testing.T) {
	long, longest := strings.Repeat("x", 250<<10), strings.Repeat("x", 253)
	of := func(kind, name, uid, index string) api.Owner {
		return api.Owner{Verdict: "Confirmed", NamespaceUID: "ns-ci", Kind: kind, Name: name, UID: uid, Job: "nightly", JobIndex: index}
	}
	for _, tt := range []struct {
		name string
		pod  *core.Pod
		want api.Owner
	}{
		{"a long index", controlledBy("u1", "Job", "nightly", "j", long), of("Job", "nightly", "j", "")},
		{"a long kind", controlledBy("u1", long, "nightly", "j", "7"), of("", "", "", "7")},
		{"a long name", controlledBy("u1", "Job", long, "j", "7"), of("", "", "", "7")},
		{"a long UID", controlledBy("u1", "Job", "nightly", long, "7"), of("", "", "", "7")},
		{"the longest", controlledBy("u1", "Job", longest, "j", longest), of("Job", longest, "j", longest)},
		{"one byte more", controlledBy("u1", "Job", longest+"x", "j", longest+"x"), of("", "", "", "")},
		{"what cannot be printed", controlledBy("u1", "Job\x1b[2J", "nightly", "j", "7\n8"), of("", "", "", "")},
		{"no text", controlledBy("u1", "Job", "n\xff", "j", "\xff"), of("", "", "", "")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, tt.pod)
			got, ok := s.one("n1", "ci", "pod-u1", "u1")
			if !ok || got != tt.want {
				t.Errorf("got %.300q, want %.300q", fmt.Sprint(got), fmt.Sprint(tt.want))
			}
			if known, _ := s.Verdict("u1", "n1"); known != tt.want {
				t.Errorf("the verdict is %.300q", fmt.Sprint(known))
			}
			owner, err := got.Parse()
			if err == nil {
				err = owner.Check()
			}
			if err != nil {
				t.Errorf("a node refuses it: %v", err)
			}
		})
	}
}

// TestHostileBatch: 50 pods with texts as long as they can be are an answer that a node takes.
func TestHostileBatch(t *testing.T) {
	longest := strings.Repeat("<", 253) // JSON escapes it
	var pods []runtime.Object
	var asks []api.OwnerAsk
	for i := range 50 {
		uid := fmt.Sprint("u", i)
		p := controlledBy(uid, longest, longest, longest, longest)
		p.Labels["batch.kubernetes.io/job-name"] = longest
		pods = append(pods, p)
		asks = append(asks, api.OwnerAsk{ID: "v" + uid, Namespace: "ci", Pod: p.Name, PodUID: uid})
	}
	answers := newStage(t, pods...).Ask(t.Context(), "n1", asks)
	text, err := json.Marshal(api.OwnerAnswers{Items: answers})
	if err != nil || len(answers) != 50 || len(text) > 512<<10 {
		t.Errorf("%d answers of %d bytes, %v", len(answers), len(text), err)
	}
}

// TestBytesOfMemory: what is remembered is bounded by its bytes, not by its number alone.
func TestBytesOfMemory(t *testing.T) {
	o := newStage(t).Owners
	longest := strings.Repeat("x", 253)
	f := fact{namespace: "ci", pod: longest, node: longest, owner: volume.Owner{
		Verdict: volume.Confirmed, NamespaceUID: "n", Kind: longest, Name: longest, UID: longest, Job: longest, JobIndex: longest,
	}}
	long, short := 0, 0
	for i := range 2 * mostFacts {
		o.facts.put(identity{podUID: fmt.Sprint(i)}, f)
		if n := len(o.facts.young) + len(o.facts.old); n > long {
			long = n
		}
		if o.facts.bytes > mostFactBytes/2 {
			t.Fatalf("the young ones take %d bytes", o.facts.bytes)
		}
	}
	if most := mostFactBytes / (7 * 253); long > most || long < most/4 {
		t.Errorf("%d facts with long texts are remembered, want at most %d", long, most)
	}
	for i := range 2 * mostFacts {
		o.facts.put(identity{podUID: fmt.Sprint("s", i)}, fact{})
		short = max(short, len(o.facts.young)+len(o.facts.old))
	}
	if short > mostFacts || short < mostFacts/2 {
		t.Errorf("%d facts with short texts are remembered, want about %d", short, mostFacts)
	}
	// What is put again counts once.
	m := newMemory(1000, 1000, func(int, int) int { return 100 })
	for range 100 {
		m.put(1, 1)
	}
	if m.bytes != 100 || len(m.old) != 0 {
		t.Errorf("one value takes %d bytes, with %d old ones", m.bytes, len(m.old))
	}
}

// TestReadsAtOnce: few pods are in memory at once, however many nodes ask while the API server is slow.
func TestReadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var reading atomic.Int64
		release := make(chan struct{})
		s.namespaces.onLookup = func() {
			reading.Add(1)
			<-release
		}
		var all sync.WaitGroup
		for i := range 2 * readsAtOnce {
			all.Go(func() {
				s.Ask(t.Context(), "n1", []api.OwnerAsk{{ID: "v", Namespace: "ci", Pod: "p", PodUID: fmt.Sprint(i)}})
			})
		}
		synctest.Wait()
		if n := reading.Load(); n != readsAtOnce {
			t.Errorf("%d pods are being read at once, want %d", n, readsAtOnce)
		}
		close(release)
		all.Wait()
		if n := s.reads(); n != 2*readsAtOnce || len(s.reading) != 0 {
			t.Errorf("%d pods were read, and %d places are taken at the end", n, len(s.reading))
		}
	})
}
