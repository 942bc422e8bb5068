//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// inFlight is how many requests the controller has in flight at most at one array.
const inFlight = 4

// TestRateOfClaims measures how fast claims are bound, and their volumes deleted, 50 at a time, with an array
// that takes its time. What takes the time is told by the CPU that each program uses, by how many requests each
// client sends to the API server, and by how the rate follows the array's latency.
//
// The controller manager takes 20 requests a second from each of its controllers, unless
// RK_CONTROLLER_MANAGER_EXTRA says otherwise to the cluster's scripts: "--kube-api-qps=500 --kube-api-burst=1000".
func TestRateOfClaims(t *testing.T) {
	if os.Getenv("KATBOX_E2E_POOLS") == "" {
		t.Skip(`the cluster is another: "make e2e SUITE=pools-rate" runs this`)
	}
	p := newPools(t)
	crowd := newCrowd(p)
	t.Logf("the controller manager has the flags %q", os.Getenv("RK_CONTROLLER_MANAGER_EXTRA"))
	for _, one := range []struct {
		latency time.Duration
		claims  int
	}{{arrayLatency, 1000}, {200 * time.Millisecond, 200}, {time.Second, 100}} {
		p.arrayWaits(one.latency)
		made := crowd.measure("made", one.claims, one.latency, crowd.make)
		gone := crowd.measure("deleted", one.claims, one.latency, crowd.remove)
		part := p.in(t)
		part.wantNothingLeft()
		t.Logf("%d claims at %s: %.1f/s made, %.1f/s deleted", one.claims, one.latency, made, gone)
	}
	p.in(t).wantAllowed()
}

// arrayWaits changes how long the array takes for each request.
func (p *poolsCluster) arrayWaits(latency time.Duration) {
	p.t.Helper()
	p.fake(p.url, http.MethodDelete, "/fake/faults", nil)
	p.fake(p.url, http.MethodPost, "/fake/faults", map[string]any{"kind": "delay", "delay": latency.String()})
}

// crowd makes claims and deletes them, 50 at a time.
type crowd struct {
	p      *poolsCluster
	api    kubernetes.Interface
	spec   corev1.PersistentVolumeClaimSpec // of each claim
	mu     sync.Mutex
	bound  map[string]string // the volume of each claim
	pvs    map[string]bool
	change chan struct{} // closed at a change, and replaced
}

const (
	crowdAtOnce  = 50
	crowdLongest = 20 * time.Minute
)

func newCrowd(p *poolsCluster) *crowd {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.state, "kubeconfig"))
	if err != nil {
		p.t.Fatal(err)
	}
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	c := &crowd{
		p: p, api: api, spec: crowdSpec("fast", "1Gi"), bound: map[string]string{}, pvs: map[string]bool{}, change: make(chan struct{}),
	}
	all := informers.NewSharedInformerFactory(api, 0)
	for _, informer := range []cache.SharedIndexInformer{
		all.Core().V1().PersistentVolumeClaims().Informer(), all.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.see(o, true) },
			UpdateFunc: func(_, o any) { c.see(o, true) },
			DeleteFunc: func(o any) { c.see(o, false) },
		}); err != nil {
			p.t.Fatal(err)
		}
	}
	all.Start(p.t.Context().Done())
	all.WaitForCacheSync(p.t.Context().Done())
	return c
}

// see takes over what has changed.
func (c *crowd) see(object any, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		delete(c.bound, o.Name)
		if there && o.Status.Phase == corev1.ClaimBound {
			c.bound[o.Name] = o.Spec.VolumeName
		}
	case *corev1.PersistentVolume:
		delete(c.pvs, o.Name)
		if there {
			c.pvs[o.Name] = true
		}
	}
	close(c.change)
	c.change = make(chan struct{})
}

// until waits until something is so.
func (c *crowd) until(ctx context.Context, is func() bool) error {
	for {
		c.mu.Lock()
		ok, change := is(), c.change
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// crowdSpec is what a claim asks for.
func crowdSpec(class, size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

func claimName(n int) string { return fmt.Sprintf("c-%04d", n) }

// make makes a claim and waits until it is bound.
func (c *crowd) make(ctx context.Context, n int) error {
	_, err := c.api.CoreV1().PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claimName(n)}, Spec: c.spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return c.until(ctx, func() bool { return c.bound[claimName(n)] != "" })
}

// remove deletes a claim and waits until its volume is gone.
func (c *crowd) remove(ctx context.Context, n int) error {
	c.mu.Lock()
	volume := c.bound[claimName(n)]
	c.mu.Unlock()
	err := c.api.CoreV1().PersistentVolumeClaims("default").Delete(ctx, claimName(n), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return c.until(ctx, func() bool { return !c.pvs[volume] })
}

// each does something for each claim, 50 at a time.
func (c *crowd) each(ctx context.Context, claims int, do func(context.Context, int) error) error {
	next, failed := make(chan int), make([]error, crowdAtOnce)
	var workers sync.WaitGroup
	for w := range crowdAtOnce {
		workers.Go(func() {
			for n := range next {
				failed[w] = errors.Join(failed[w], do(ctx, n))
			}
		})
	}
	for n := range claims {
		next <- n
	}
	close(next)
	workers.Wait()
	return errors.Join(failed...)
}

// measure does something for each claim, and reports how fast that was and what has taken the time.
func (c *crowd) measure(what string, claims int, latency time.Duration, do func(context.Context, int) error) (rate float64) {
	t := c.p.t
	t.Helper()
	c.p.fake(c.p.url, http.MethodDelete, "/fake/counts", nil)
	before := usedByPrograms(t)
	ctx, cancel := context.WithTimeout(t.Context(), crowdLongest)
	defer cancel()
	began := time.Now()
	if err := c.each(ctx, claims, do); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	requests := 0
	var counts map[string]int
	c.p.fakeInto(&counts, c.p.url, http.MethodGet, "/fake/counts", nil)
	for call, n := range counts {
		if strings.Contains(call, "/volumes") { // health checks have a turn of their own
			requests += n
		}
	}
	each := float64(requests) / float64(claims)
	rate = float64(claims) / took.Seconds()
	most := inFlight / (each * latency.Seconds())
	report(fmt.Sprintf("%d claims %s, array takes %s", claims, what, latency),
		"%.1f/s, %.1f requests each: %.0f %% of the %.1f/s that the array allows", rate, each, 100*rate/most, most)
	t.Logf("%s at %s, in %.1f s: %v", what, latency, took.Seconds(), counts)
	t.Logf("CPU: %s", usedSince(t, before, took))
	t.Logf("requests to the API server, for each claim: %s", c.p.requestsSince(began, claims))
	return rate
}
