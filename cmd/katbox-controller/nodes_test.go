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
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	nodemetrics "github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/internal/testing/fakepools"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

const diskUUID = "0f8a4a52-1111-4222-8333-444444444444"

// nodesWorld is a world with a node that has a disk, and an API server that knows its token.
type nodesWorld struct {
	*world
	disk *fakepools.Node
	ca   *uplinktest.Authority
}

func newNodesWorld(t *testing.T) *nodesWorld {
	w := &nodesWorld{world: newWorld(t), disk: &fakepools.Node{}, ca: uplinktest.NewAuthority(t)}
	w.disk.Add(fakepools.NewDisk(local.Pool{UUID: diskUUID, Class: "fast", HardLimit: true}))
	target, err := url.Parse(w.api.URL())
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	uid := ""
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			proxy.ServeHTTP(answer, r)
			return
		}
		var review authentication.TokenReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review) // JSON or protobuf
		}
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
		if review.Spec.Token == "token" {
			review.Status = authentication.TokenReviewStatus{
				Authenticated: true, Audiences: review.Spec.Audiences, User: authentication.UserInfo{
					Username: "system:serviceaccount:katbox:katbox", Extra: map[string]authentication.ExtraValue{
						"authentication.kubernetes.io/pod-name": {"katbox-1"}, "authentication.kubernetes.io/pod-uid": {uid},
						"authentication.kubernetes.io/node-name": {"n1"},
					},
				},
			}
		}
		answer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(answer).Encode(review)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config := bytes.ReplaceAll(w.api.Kubeconfig(), []byte(w.api.URL()), []byte(server.URL))
	must(t, os.WriteFile(filepath.Join(w.dir, "kubeconfig"), config, 0o600))

	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "katbox-1", Namespace: "katbox", Labels: map[string]string{"app.kubernetes.io/name": "katbox"}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
	}
	body, err := json.Marshal(pod)
	must(t, err)
	response, err := http.Post(w.api.URL()+"/api/v1/namespaces/katbox/pods", "application/json", bytes.NewReader(body))
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, json.Unmarshal(text, &pod))
	if uid = string(pod.UID); uid == "" {
		t.Fatalf("the pod has no UID: %s", text)
	}

	leaf := w.ca.Leaf(t, "localhost")
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	must(t, err)
	for name, content := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), "ca.crt": w.ca.PEM, "token": []byte("token"),
	} {
		must(t, os.WriteFile(filepath.Join(w.dir, name), content, 0o600))
	}
	return w
}

// lead starts a controller with a port for nodes, and returns that.
func (w *nodesWorld) lead(name, endpoint string, flags ...string) (r *replica, port string) {
	w.t.Helper()
	socket := "unix://" + filepath.Join(w.dir, name+"-local.sock")
	r = w.start(name, append([]string{"--nodes-endpoint=" + endpoint, "--local-endpoint=" + socket}, flags...)...)
	r.says(`"for":"nodes-endpoint"`)
	found := regexp.MustCompile(`"for":"nodes-endpoint","address":"[^"]*:(\d+)"`).FindStringSubmatch(r.log())
	if found == nil {
		w.t.Fatalf("it does not say on which port:\n%s", r.log())
	}
	return r, found[1]
}

// dial starts the node's way to the controller.
func (w *nodesWorld) dial(port string) *uplink.Uplink {
	w.t.Helper()
	u, err := uplink.Start(uplink.Config{
		Controller: "localhost:" + port, CAFile: filepath.Join(w.dir, "ca.crt"), TokenFile: filepath.Join(w.dir, "token"), Node: "n1",
		Version: "test", Pools: w.disk, Metrics: nodemetrics.New("test", ""),
	})
	must(w.t, err)
	w.t.Cleanup(func() { _ = u.Stop(context.Background()) })
	return u
}

// until waits until something is so.
func (w *nodesWorld) until(what string, is func() (string, bool)) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		has, ok := is()
		if ok {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: still %s", what, has)
		}
	}
}

// pool waits until the Pool of the disk is in a state.
func (w *nodesWorld) pool(want v1alpha1.PoolState) {
	w.t.Helper()
	w.until("the Pool is "+string(want), func() (string, bool) {
		var p v1alpha1.Pool
		if err := w.kube.Get(w.t.Context(), client.ObjectKey{Name: pools.LocalPoolName("fast", diskUUID)}, &p); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", p.Status), p.Status.State == want && (want != v1alpha1.PoolReady || p.Status.Local.Node == "n1")
	})
}

func (w *nodesWorld) client(name string) csi.ControllerClient {
	w.t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(w.dir, name+"-local.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(w.t, err)
	w.t.Cleanup(func() { conn.Close() })
	return csi.NewControllerClient(conn)
}

// repeat repeats a call as a sidecar does.
func (w *nodesWorld) repeat(what string, call func(context.Context) error) {
	w.t.Helper()
	w.until(what, func() (string, bool) {
		err := call(w.t.Context())
		return fmt.Sprint(err), err == nil
	})
}

// TestVolumeIsMadeOnANode: from the socket of the driver to a disk of a node, over the connection that the node has
// opened; through the death of the controller, and through the node's absence.
func TestVolumeIsMadeOnANode(t *testing.T) {
	t.Parallel()
	w := newNodesWorld(t)
	first, port := w.lead("one", "127.0.0.1:0", "--nodes-cert-dir="+w.dir)
	node := w.dial(port)
	w.pool(v1alpha1.PoolReady)
	here := &csi.Topology{Segments: map[string]string{pools.TopologyKey(diskUUID): pools.TopologyValue}}
	request := &csi.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: 1<<20 + 1}, Parameters: map[string]string{"poolClass": "fast"},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{here}, Preferred: []*csi.Topology{here}},
	}
	create := func(name string) (made *csi.Volume) {
		t.Helper()
		driver := w.client(name)
		w.repeat("create", func(ctx context.Context) error {
			answer, err := driver.CreateVolume(ctx, request)
			made = answer.GetVolume()
			return err
		})
		return made
	}
	made := create("one")
	if made.GetVolumeId() != "pvc-1" || made.GetCapacityBytes() != 2<<20 || len(made.GetAccessibleTopology()) != 1 {
		t.Errorf("made %v", made)
	}
	if volumes, _ := w.disk.On(diskUUID); len(volumes) != 1 || volumes[0].Size != 2<<20 || !strings.Contains(volumes[0].Comment, "cluster") {
		t.Errorf("the disk has %+v", volumes)
	}

	must(t, first.cmd.Process.Kill())
	<-first.ended
	_, again := w.lead("two", "127.0.0.1:"+port, "--nodes-cert-dir="+w.dir)
	if again != port {
		t.Fatalf("the port is %s, was %s", again, port)
	}
	if got := create("two"); got.GetVolumeId() != made.GetVolumeId() {
		t.Errorf("made again as %v", got)
	}

	must(t, node.Stop(t.Context()))
	w.pool(v1alpha1.PoolUnreachable)
	node = w.dial(port)
	w.pool(v1alpha1.PoolReady)
	driver := w.client("two")
	w.repeat("delete", func(ctx context.Context) error {
		_, err := driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "pvc-1"})
		return err
	})
	if volumes, _ := w.disk.On(diskUUID); len(volumes) > 0 {
		t.Errorf("the disk has %+v", volumes)
	}
	must(t, node.Stop(t.Context()))
}

// TestOwnCertificate: the controller makes a certificate for its Service, and publishes the CA. Replicas that do not
// lead take connections too, and who has no token of a daemon gets in nowhere.
func TestOwnCertificate(t *testing.T) {
	t.Parallel()
	w := newNodesWorld(t)
	first, _ := w.lead("one", "127.0.0.1:0")
	first.says(`"serving"`)
	_, port := w.lead("two", "127.0.0.1:0")
	var published corev1.ConfigMap
	w.until("the CA is published", func() (string, bool) {
		response, err := http.Get(w.api.URL() + "/api/v1/namespaces/katbox/configmaps/katbox-controller-ca")
		must(t, err)
		defer response.Body.Close()
		must(t, json.NewDecoder(response.Body).Decode(&published))
		return response.Status, published.Data["ca.crt"] != ""
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(published.Data["ca.crt"]))
	var conn *tls.Conn
	w.until("the replica that waits shows its certificate", func() (string, bool) {
		var err error
		conn, err = tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: roots, ServerName: "katbox-controller-nodes.katbox.svc"})
		return fmt.Sprint(err), err == nil
	})
	defer conn.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x/v1/connect", nil)
	must(t, err)
	request.Header = http.Header{
		"Authorization": {"Bearer another"}, "Connection": {"Upgrade"}, "Upgrade": {"katbox-node/1"}, "Katbox-Node": {"n1"},
	}
	must(t, request.Write(conn))
	text, err := io.ReadAll(conn)
	if !strings.HasPrefix(string(text), "HTTP/1.1 401 ") {
		t.Errorf("a token of nobody: %s, %v", text, err)
	}
}
