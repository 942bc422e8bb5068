package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func daemonPod(name, uid, node string) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Namespace: "katbox", Name: name, UID: types.UID(uid), Labels: map[string]string{"app.kubernetes.io/name": "katbox"},
			CreationTimestamp: meta.Unix(1700000000, 0),
		},
		Spec: core.PodSpec{NodeName: node},
	}
}

// watching returns Pods that run, and the UIDs of pods that went.
func watching(t *testing.T, client *fake.Clientset) (*Pods, chan Pod) {
	p, err := NewPods(PodsConfig{Client: client.CoreV1(), Namespace: "katbox", Selector: "app.kubernetes.io/name=katbox"})
	if err != nil {
		t.Fatal(err)
	}
	gone, ended := make(chan Pod, 10), make(chan struct{})
	// The fake client loses what changes after the list and before the watch.
	watched := make(chan struct{})
	var once sync.Once
	client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		once.Do(func() { close(watched) })
		return true, w, err
	})
	running, stop := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		p.Run(running, func(pod Pod) { gone <- pod })
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	for _, begun := range []<-chan struct{}{p.Synced(), watched} {
		select {
		case <-begun:
		case <-time.After(patience):
			t.Fatal("the pods are not listed and watched")
		}
	}
	return p, gone
}

// TestPods: the pods of the daemons are known by UID, and their nodes are expected.
func TestPods(t *testing.T) {
	other := daemonPod("other", "u9", "n9")
	other.Labels = nil
	failed := daemonPod("failed", "u8", "n8")
	failed.Status.Phase = core.PodFailed
	client := fake.NewClientset(daemonPod("a", "u1", "n1"), daemonPod("b", "u2", ""), other, failed)
	p, gone := watching(t, client)
	if pod, ok := p.Pod("u1"); !ok || pod.Name != "a" || pod.Node != "n1" || pod.Created.Unix() != 1700000000 {
		t.Errorf("u1 is %+v, %v", pod, ok)
	}
	if _, ok := p.Pod("u9"); ok {
		t.Error("a pod that is no daemon is known")
	}
	if nodes, synced := p.Nodes(); !synced || len(nodes) != 1 || nodes["n1"].Unix() != 1700000000 {
		t.Errorf("nodes are %v, %v", nodes, synced)
	}
	if !p.Expects("n1") || p.Expects("n8") || p.Expects("n9") {
		t.Error("other nodes are expected than n1")
	}

	pods := client.CoreV1().Pods("katbox")
	scheduled := daemonPod("b", "u2", "n2")
	if _, err := pods.Update(ctx(t), scheduled, meta.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Create(ctx(t), daemonPod("c", "u3", "n3"), meta.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t}
	s.wait("the new nodes", func() bool { return p.Expects("n2") && p.Expects("n3") })
	if err := pods.Delete(ctx(t), "a", meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case pod := <-gone:
		if pod.UID != "u1" || pod.Node != "n1" {
			t.Errorf("%+v is gone", pod)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told that a pod is gone")
	}
	if _, ok := p.Pod("u1"); ok {
		t.Error("a pod that is gone is known")
	}
	// A DaemonSet is about to make another.
	if nodes, _ := p.Nodes(); len(nodes) != 3 || !p.Expects("n1") || time.Since(nodes["n1"]) > time.Hour {
		t.Errorf("nodes are %v", nodes)
	}
	p.mu.Lock()
	p.replaced["n1"] = time.Now().Add(-2 * replacement)
	p.mu.Unlock()
	if p.Expects("n1") {
		t.Error("a node without a daemon is expected for ever")
	}
	if nodes, _ := p.Nodes(); len(nodes) != 2 || len(p.replaced) != 0 {
		t.Errorf("nodes are %v, replaced %v", nodes, p.replaced)
	}
}

// TestPodsRead: one pod is read by its name.
func TestPodsRead(t *testing.T) {
	client := fake.NewClientset(daemonPod("a", "u1", "n1"))
	p, err := NewPods(PodsConfig{Client: client.CoreV1(), Namespace: "katbox", Selector: "x=y"})
	if err != nil {
		t.Fatal(err)
	}
	if pod, err := p.Read(ctx(t), "a"); err != nil || pod.UID != "u1" || pod.Node != "n1" {
		t.Errorf("a is %+v, %v", pod, err)
	}
	if _, err := p.Read(ctx(t), "b"); !errors.Is(err, ErrNoPod) {
		t.Errorf("b: %v", err)
	}
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("down")
	})
	if _, err := p.Read(ctx(t), "a"); err == nil || errors.Is(err, ErrNoPod) {
		t.Errorf("without an API server: %v", err)
	}
	if _, synced := p.Nodes(); synced || !p.Expects("any") {
		t.Error("what was never listed is known")
	}
	if _, err := NewPods(PodsConfig{}); err == nil {
		t.Error("an empty configuration is accepted")
	}
}

// TestPodsHeard: with each pod it is known when the API server has last said how the pods are: for a list, when it began; else when
// there was an event or a bookmark. A watch that says nothing, and a list that fails, prove nothing.
func TestPodsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(daemonPod("a", "u1", "n1"))
		listing := time.Second
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(listing)
			return false, nil, nil
		})
		var server *watch.RaceFreeFakeWatcher
		client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			server = watch.NewRaceFreeFake()
			return true, server, nil
		})
		p, err := NewPods(PodsConfig{Client: client.CoreV1(), Namespace: "katbox", Selector: "app.kubernetes.io/name=katbox"})
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { p.Run(running, func(Pod) {}) })
		defer func() {
			stop()
			all.Wait()
		}()
		began := time.Now()
		want := func(when string, at time.Time) {
			t.Helper()
			synctest.Wait()
			if pod, ok := p.Pod("u1"); !ok || !pod.Heard.Equal(at) {
				t.Errorf("%s: known is %t, heard %s", when, ok, pod.Heard.Sub(began))
			}
		}
		<-p.Synced()
		want("after the list", began)
		time.Sleep(10 * time.Second)
		want("while nothing is said", began)
		bookmark := daemonPod("", "", "")
		bookmark.ResourceVersion = "7"
		server.Action(watch.Bookmark, bookmark)
		last := time.Now()
		want("after a bookmark", last)
		time.Sleep(10 * time.Second)
		server.Modify(daemonPod("a", "u1", "n1"))
		last = time.Now()
		want("after a change", last)
		leaving := daemonPod("a", "u1", "n1")
		leaving.DeletionTimestamp = &meta.Time{Time: last}
		server.Modify(leaving)
		synctest.Wait()
		if pod, _ := p.Pod("u1"); !pod.Leaving {
			t.Error("a pod that is being deleted is not said to be")
		}
		listing = 10 * time.Second
		server.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		want("before the next list", last)
		time.Sleep(2 * time.Second) // the list begins within 1.5 s
		want("while a list runs", last)
		time.Sleep(listing)
		synctest.Wait()
		if pod, _ := p.Pod("u1"); !pod.Heard.After(last) || time.Since(pod.Heard) < listing {
			t.Errorf("after the next list: heard %s, now is %s", pod.Heard.Sub(began), time.Since(began))
		}
	})
}

// TestPodOfTheSameNode: a node whose pod was replaced goes on to be expected, whatever comes first; of a pod that moves to another
// node the first one is not.
func TestPodOfTheSameNode(t *testing.T) {
	p, err := NewPods(PodsConfig{Client: fake.NewClientset().CoreV1(), Namespace: "katbox", Selector: "x=y"})
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	p.gone = func(pod Pod) { gone = append(gone, pod.UID+" "+pod.Node) }
	close(p.synced)
	p.see(daemonPod("a", "u1", "n1"))
	p.see(daemonPod("b", "u2", "n2"))
	p.see(daemonPod("c", "u3", "n1"))
	p.lose("u1", nil)
	if !slices.Equal(gone, []string{"u1 n1"}) || !p.Expects("n1") || len(p.replaced) != 0 {
		t.Errorf("gone are %q, replaced %v", gone, p.replaced)
	}
	p.see(daemonPod("c", "u3", "n4"))
	if p.byNode["n1"] != 0 || p.byNode["n4"] != 1 {
		t.Errorf("nodes are %v", p.byNode)
	}
}
