package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/zapr"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/archived"
	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logging"
	"github.com/katbox/katbox/internal/testing/fakebucket"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

const (
	// asProcess names the file with the processConfig of a test binary that is to be a gateway.
	asProcess = "KATBOX_TEST_GATEWAY"
	// The cluster of such a gateway: one node, which runs a daemon, and a namespace with pods on it.
	clusterUID, ciUID, nodeName = "0a0a0a0a-0000-4000-8000-000000000000", "aaaaaaaa-0000-4000-8000-000000000000", "n1"
	mostPods                    = 100
)

func podUID(number int) string { return fmt.Sprintf("cccccccc-0000-4000-8000-%012d", number) }

func podName(number int) string { return fmt.Sprint("job-", number) }

// processConfig says what a gateway in a process of its own is to do.
type processConfig struct {
	// Args are its flags, CA is that of the API server.
	Args []string
	CA   string
	// Sweep: it looks once for what has ended in the archive, and ends.
	Sweep bool
}

// TestMain is the tests, or a gateway in a process of its own: a test may kill it. What it knows of the cluster is from fakes of the
// API server's clients; all else is as in a pod.
func TestMain(m *testing.M) {
	file := os.Getenv(asProcess)
	if file == "" {
		os.Exit(m.Run())
	}
	go func() { // it ends with the test, however that ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := beGateway(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beGateway(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c processConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	o, err := parse(c.Args, io.Discard)
	if err != nil {
		return err
	}
	if c.Sweep {
		return sweepOnce(o)
	}
	counted := gatewaymetrics.New(version, revision)
	sink, err := logging.NewSink(o.logFormat, os.Stdout, counted.LogLineDropped)
	if err != nil {
		return err
	}
	z, err := logging.New(o.logLevel, o.logFormat, sink)
	if err != nil {
		return err
	}
	return live(context.Background(), o, oneNode(c.CA), counted, zapr.NewLogger(z))
}

// oneNode is a cluster that allows all readers everything.
func oneNode(ca string) clients {
	named := func(name, uid string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)},
		}
	}
	daemon := metav1.ObjectMeta{
		Namespace: "katbox", Name: "katbox-1", UID: "daemon-1", Labels: map[string]string{"app.kubernetes.io/name": "katbox"},
	}
	objects := []runtime.Object{
		named("kube-system", clusterUID), named("ci", ciUID), &corev1.Pod{ObjectMeta: daemon, Spec: corev1.PodSpec{NodeName: nodeName}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "katbox-gateway"},
			Data:       map[string][]byte{continueKey: make([]byte, fleet.KeySize)}, // the API server keeps it
		},
	}
	for i := range mostPods {
		meta := metav1.ObjectMeta{Namespace: "ci", Name: podName(i), UID: types.UID(podUID(i))}
		objects = append(objects, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: nodeName}})
	}
	cluster, core := fakeCluster(ca, objects...)
	core.PrependReactor("create", "tokenreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authentication.TokenReview{Status: authentication.TokenReviewStatus{
			Authenticated: true, Audiences: []string{"katbox-gateway"},
			User: authentication.UserInfo{Username: "system:serviceaccount:katbox:katbox", Extra: map[string]authentication.ExtraValue{
				"authentication.kubernetes.io/pod-name": {daemon.Name}, "authentication.kubernetes.io/pod-uid": {string(daemon.UID)},
				"authentication.kubernetes.io/node-name": {nodeName},
			}},
		}}, nil
	})
	core.PrependReactor("create", "subjectaccessreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authorization.SubjectAccessReview{Status: authorization.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	return cluster
}

// sweepOnce is the look for what has ended that a gateway begins once an hour.
func sweepOnce(o options) error {
	b, err := bucket.New(bucket.Config{
		Endpoint: o.archive.endpoint, Region: o.archive.region, Bucket: o.archive.bucket, Credentials: o.archive.credentials,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	a, err := archived.New(archived.Config{Bucket: b, Namespaces: sweepNamespaces{}})
	if err != nil {
		return err
	}
	_, err = a.Sweep(context.Background())
	return err
}

// process is a gateway in a process of its own.
type process struct {
	*testing.T
	config processConfig
	// api, nodes and http are where it listens.
	api, nodes, http string
	client           *http.Client
	// ca signs the certificate of the gateway, in ca.crt of dir.
	dir string

	running *exec.Cmd
	alive   io.Closer
	said    *bytes.Buffer
}

// newProcess prepares a gateway with an archive at that endpoint.
func newProcess(t *testing.T, endpoint string) *process {
	t.Helper()
	p := &process{T: t, dir: t.TempDir(), said: &bytes.Buffer{}}
	serving, front := uplinktest.NewAuthority(t), newAuthority(t)
	leaf := serving.Leaf(t, "localhost")
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	must(t, err)
	for name, content := range map[string][]byte{
		"ca.crt": serving.PEM, "tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), "token": []byte("token"),
	} {
		must(t, os.WriteFile(filepath.Join(p.dir, name), content, 0o600))
	}
	for _, address := range []*string{&p.api, &p.nodes, &p.http} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		*address = strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)
		must(t, l.Close())
	}
	p.config = processConfig{CA: front.pem(), Args: []string{
		"--namespace=katbox", "--api-endpoint=" + p.api, "--nodes-endpoint=" + p.nodes, "--http-endpoint=" + p.http, "--shutdown-delay=0s",
		"--cert-mode=given", "--cert-dir=" + p.dir, "--outcomes=off", "--archive-bucket=" + fakebucket.Name,
		"--archive-endpoint=" + endpoint, "--archive-region=" + fakebucket.Region, "--archive-credentials=" + fakebucket.Credentials(t),
	}}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(serving.PEM)
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{front.client("front-proxy-client")},
	}}}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the gateway said:\n%s", p.said)
		}
	})
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts it.
func (p *process) start() {
	p.Helper()
	text, err := json.Marshal(p.config)
	must(p, err)
	file := filepath.Join(p.dir, "process.json")
	must(p, os.WriteFile(file, text, 0o600))
	p.running = exec.Command(os.Args[0])
	p.running.Env = append(os.Environ(), asProcess+"="+file)
	p.running.Stdout, p.running.Stderr = p.said, p.said
	p.alive, err = p.running.StdinPipe()
	must(p, err)
	must(p, p.running.Start())
}

// kill ends it with SIGKILL, if it runs.
func (p *process) kill() {
	if p.running != nil {
		_ = p.running.Process.Kill() // it may have ended by itself
		_ = p.running.Wait()
		p.alive.Close()
		p.running = nil
	}
	p.client.CloseIdleConnections()
}

// ready waits until the API server may ask it.
func (p *process) ready() {
	p.Helper()
	p.until("the gateway is ready", func() error {
		answer, err := http.Get("http://" + p.http + "/readyz")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", answer.Status, text)
		}
		return err
	})
}

func (p *process) until(what string, check func() error) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("%s: %v", what, err)
		}
	}
}

// ask asks below retainedvolumes of the namespace, as the API server does for a user. It returns what was read though the answer is cut.
func (p *process) ask(user, method, path string) (code int, body []byte, err error) {
	r, err := http.NewRequest(method, "https://"+p.api+"/apis/katbox.io/v1alpha1/namespaces/ci/retainedvolumes"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("X-Remote-User", user)
	answer, err := p.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}
