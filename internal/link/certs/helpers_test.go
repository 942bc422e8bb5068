package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	testNamespace  = "katbox"
	testSecret     = "katbox-gateway"
	testConfigMap  = "katbox-gateway-ca"
	testAPIService = "v1alpha1.katbox.io"
)

var testNames = []string{"katbox-gateway.katbox.svc", "katbox-gateway-nodes.katbox.svc"}

// cluster plays the API server. Unlike the fakes it is made of, it refuses to replace what was
// changed since it was read.
type cluster struct {
	t       *testing.T
	core    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient

	mu       sync.Mutex
	fault    fault
	versions int
	writes   []string
}

// fault is asked before each call and may let it fail. If done is set, the call is carried out all
// the same, and only its answer is lost.
type fault func(verb, resource string) (done bool, err error)

// always lets all calls fail.
func always(err error) fault {
	return func(string, string) (bool, error) { return false, err }
}

// breaks puts a fault into effect; nil is none.
func (c *cluster) breaks(f fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, core: fake.NewClientset()}
	c.dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	c.core.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return c.react(action, c.core.Tracker())
	})
	c.dynamic.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return c.react(action, c.dynamic.Tracker())
	})
	c.makeAPIService(nil)
	return c
}

// react is what the API server does beyond what a fake does.
func (c *cluster) react(action clienttesting.Action, tracker clienttesting.ObjectTracker) (bool, runtime.Object, error) {
	verb, resource := action.GetVerb(), action.GetResource()
	c.mu.Lock()
	if verb != "get" {
		c.writes = append(c.writes, verb+" "+resource.Resource)
	}
	broken := c.fault
	c.mu.Unlock()
	var fault error
	if broken != nil {
		done, err := broken(verb, resource.Resource)
		if err != nil && !done {
			return true, nil, err
		}
		fault = err
	}
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		c.stamp(action.Object)
		if fault != nil {
			c.must(tracker.Create(resource, action.Object, action.Namespace))
		}
	case clienttesting.UpdateActionImpl:
		name := must(meta.Accessor(action.Object))
		current, err := tracker.Get(resource, action.Namespace, name.GetName())
		if err != nil {
			return true, nil, err
		}
		if must(meta.Accessor(current)).GetResourceVersion() != name.GetResourceVersion() {
			return true, nil, conflict(resource, name.GetName())
		}
		c.stamp(action.Object)
		if fault != nil {
			c.must(tracker.Update(resource, action.Object, action.Namespace))
		}
	case clienttesting.PatchActionImpl:
		var patch unstructured.Unstructured
		if err := json.Unmarshal(action.Patch, &patch.Object); err != nil {
			c.t.Errorf("patch %s: %v", action.Patch, err)
		}
		current, err := tracker.Get(resource, "", action.Name)
		if err != nil {
			return true, nil, err
		}
		object := current.DeepCopyObject().(*unstructured.Unstructured)
		if object.GetResourceVersion() != patch.GetResourceVersion() {
			return true, nil, conflict(resource, action.Name)
		}
		spec, _, _ := unstructured.NestedMap(patch.Object, "spec")
		if len(spec) != 1 || len(patch.Object) != 2 || spec["caBundle"] == nil {
			c.t.Errorf("it patches more than the caBundle: %s", action.Patch)
		}
		c.must(unstructured.SetNestedField(object.Object, spec["caBundle"], "spec", "caBundle"))
		c.stamp(object)
		c.must(tracker.Update(resource, object, ""))
		return true, object, fault
	}
	return fault != nil, nil, fault
}

// stamp gives an object the next resource version.
func (c *cluster) stamp(object runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions++
	must(meta.Accessor(object)).SetResourceVersion(strconv.Itoa(c.versions))
}

func conflict(resource schema.GroupVersionResource, name string) error {
	return apierrors.NewConflict(resource.GroupResource(), name, fmt.Errorf("it has changed"))
}

// written returns the writes so far, and forgets them.
func (c *cluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := c.writes
	c.writes = nil
	return writes
}

// makeAPIService makes or replaces the APIService; a change sees its spec.
func (c *cluster) makeAPIService(change func(spec map[string]any)) {
	spec := map[string]any{"group": "katbox.io", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15)}
	if change != nil {
		change(spec)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": testAPIService}, "spec": spec,
	}}
	c.stamp(object)
	c.drop(c.dynamic.Tracker(), apiServices, "", testAPIService)
	c.must(c.dynamic.Tracker().Create(apiServices, object, ""))
}

// caBundle returns that of the APIService.
func (c *cluster) caBundle() []byte {
	c.t.Helper()
	object, err := c.dynamic.Tracker().Get(apiServices, "", testAPIService)
	if err != nil {
		c.t.Fatal(err)
	}
	encoded, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "spec", "caBundle")
	return must(base64.StdEncoding.DecodeString(encoded))
}

// published returns what nodes see.
func (c *cluster) published() []byte {
	c.t.Helper()
	object, err := c.core.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), testNamespace, testConfigMap)
	if err != nil {
		c.t.Fatal(err)
	}
	return []byte(object.(*corev1.ConfigMap).Data["ca.crt"])
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// secret returns the Secret, or nil.
func (c *cluster) secret() *corev1.Secret {
	object, err := c.core.Tracker().Get(secrets, testNamespace, testSecret)
	if err != nil {
		return nil
	}
	return object.(*corev1.Secret).DeepCopy()
}

// putSecret replaces the Secret as a person would.
func (c *cluster) putSecret(data map[string][]byte) {
	c.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: testSecret, Namespace: testNamespace, Labels: map[string]string{"mine": "yes"}},
		Data:       data,
	}
	c.stamp(secret)
	c.dropSecret()
	c.must(c.core.Tracker().Create(secrets, secret, testNamespace))
}

func (c *cluster) dropSecret() {
	c.drop(c.core.Tracker(), secrets, testNamespace, testSecret)
}

// drop deletes an object, which may be missing.
func (c *cluster) drop(tracker clienttesting.ObjectTracker, resource schema.GroupVersionResource, namespace, name string) {
	if err := tracker.Delete(resource, namespace, name); !apierrors.IsNotFound(err) {
		c.must(err)
	}
}

// must ends the program at an error of the fake itself: the calling goroutine may not be the test's.
func (c *cluster) must(err error) {
	if err != nil {
		panic(err)
	}
}

func (c *cluster) publishing() Publishing {
	return Publishing{Client: c.core, Namespace: testNamespace, ConfigMap: testConfigMap, Dynamic: c.dynamic, APIService: testAPIService}
}

// replica is one gateway.
type replica struct {
	*Builtin
	log  *lines
	ends []time.Time
}

func (c *cluster) newReplica(names ...string) *replica {
	c.t.Helper()
	if len(names) == 0 {
		names = testNames
	}
	r := &replica{log: new(lines)}
	var err error
	r.Builtin, err = NewBuiltin(BuiltinConfig{
		Program: testSecret, Client: c.core, Namespace: testNamespace, Secret: testSecret, Names: names, Publishing: c.publishing(),
		Ends: func(end time.Time) { r.ends = append(r.ends, end) }, Log: r.log.logger(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	// What a test sees does not depend on chance.
	r.jitter = jitterMost / 2
	return r
}

// run starts a replica, and ends it with the test.
func (c *cluster) run(r *replica) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(func() {
		cancel()
		r.Wait()
	})
	if err := r.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// mustLook looks once.
func (r *replica) mustLook(t *testing.T) {
	t.Helper()
	if err := r.look(t.Context()); err != nil {
		t.Fatalf("%v at %s", err, time.Now())
	}
}

// leaf returns the certificate that clients see.
func leafOf(t *testing.T, s Source) *x509.Certificate {
	t.Helper()
	c, err := s.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}

// connect makes a TLS connection as a client does that trusts the roots.
func connect(s Source, roots []byte, name string) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return fmt.Errorf("no CA in %q", roots)
	}
	client, server := net.Pipe()
	// A pipe holds no bytes: if the client refuses, both write and nobody reads.
	limit := time.Now().Add(time.Second)
	if err := errors.Join(client.SetDeadline(limit), server.SetDeadline(limit)); err != nil {
		return err
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		defer server.Close()
		serving := tls.Server(server, &tls.Config{GetCertificate: s.GetCertificate, SessionTicketsDisabled: true})
		_ = serving.Handshake() // The client says whether it trusts the server.
	})
	err := tls.Client(client, &tls.Config{RootCAs: pool, ServerName: name}).Handshake()
	client.Close()
	ended.Wait()
	return err
}

// trusted fails the test unless both the API server and a node can connect, by each name.
func (c *cluster) trusted(s Source) {
	c.t.Helper()
	for _, name := range testNames {
		if err := connect(s, c.published(), name); err != nil {
			c.t.Fatalf("a node to %s at %s: %v", name, time.Now(), err)
		}
		if err := connect(s, c.caBundle(), name); err != nil {
			c.t.Fatalf("the API server to %s at %s: %v", name, time.Now(), err)
		}
	}
}

// inBubble runs a test with its own time.
func inBubble(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newCluster(t)) })
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		fmt.Fprintln(&l.text, args)
	}, funcr.Options{})
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
