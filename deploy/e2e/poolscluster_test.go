//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	poolsDriver = "array.csi.katbox.io"
	// arrayLatency is how long the array takes for every request.
	arrayLatency = 20 * time.Millisecond
)

// poolsCluster is a cluster with a class that has one pool.
type poolsCluster struct {
	*cluster
	// whole is the test that all scenarios are parts of.
	whole *testing.T
	node  string
	array *program
	// url is the array's, arrayFlags what starts it again with the volumes that it has.
	url        string
	arrayFlags []string
	stub       *stubNode
	// overlay is the directory of what is installed.
	overlay string
	// removals are when the overlay or the chart was deleted, and its rights before its pods.
	removals []removal
}

// removal is a time in which what is refused is no mistake.
type removal struct{ began, ended time.Time }

func (p *poolsCluster) in(t *testing.T) *poolsCluster {
	other := *p
	other.cluster = p.cluster.in(t)
	return &other
}

// program is a program on the host.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	first chan string // its first line of output
}

// launch starts a program, whose output goes to a log. It ends with the whole test.
func (p *poolsCluster) launch(name, path string, args ...string) *program {
	p.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.state, "logs", name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	r := &program{cmd: exec.Command(path, args...), ended: make(chan struct{}), first: make(chan string, 1)}
	r.cmd.Stderr = log
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.whole.Cleanup(func() { r.end(syscall.SIGTERM) })
	go func() {
		defer close(r.ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			select {
			case r.first <- lines.Text():
			default:
			}
			fmt.Fprintln(log, lines.Text())
		}
		_ = r.cmd.Wait()
		log.Close()
	}()
	return r
}

// end ends a program by a signal and waits.
func (r *program) end(signal syscall.Signal) {
	_ = r.cmd.Process.Signal(signal)
	<-r.ended
}

func (p *poolsCluster) bin(name string) string { return filepath.Join("..", "..", "bin", name) }

// startArray starts the array, again on its address where it had one.
func (p *poolsCluster) startArray() {
	p.t.Helper()
	if p.arrayFlags == nil {
		p.arrayFlags = []string{"--state", filepath.Join(p.state, "array.json"), "--latency", arrayLatency.String(), "--no-recycle-bin"}
	}
	listen := strings.TrimPrefix(p.url, "http://")
	if listen == "" { // pods have another network, from which they reach the node
		listen = p.kubectl("get", "node", p.node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`) + ":0"
	}
	flags := append(slices.Clip(p.arrayFlags), "--listen", listen)
	p.array = p.launch("array", p.bin("fakearray"), flags...)
	select {
	case line := <-p.array.first:
		p.url = line[strings.Index(line, "http://"):]
	case <-p.array.ended:
		p.t.Fatal("the array has ended; see its log")
	}
}

func (p *poolsCluster) socketDir() string {
	return filepath.Join(p.kubeletDir(), "plugins", poolsDriver)
}

// onArray returns how many objects of a kind the array has: volumes, snapshots or servers.
func (p *poolsCluster) onArray(kind string) []map[string]any {
	p.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.url+"/api/"+kind+".json", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("X-Access-Key", "token")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	var content struct{ Response map[string]json.RawMessage }
	if err := json.NewDecoder(answer.Body).Decode(&content); err != nil {
		p.t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(content.Response[kind], &objects); err != nil {
		p.t.Fatalf("%s: %v", kind, err)
	}
	return objects
}

// attachedTo returns the IDs of the server records that a volume is attached to; empty for none.
func (p *poolsCluster) attachedTo(volume string) string {
	p.t.Helper()
	for _, v := range p.onArray("volumes") {
		if v["display_name"] == volume {
			servers, _ := v["server_ext_names"].(string)
			return servers
		}
	}
	return ""
}

// wantNothingLeft waits until there is no volume any more, neither in the cluster nor on the array.
func (p *poolsCluster) wantNothingLeft() {
	p.t.Helper()
	p.eventually("nothing is left in the cluster", func() error {
		out, err := p.tryKubectl("", "get", "pv,volumeattachments,volumesnapshotcontents,poolvolumes,poolsnapshots,poolattachments", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	for _, kind := range []string{"volumes", "snapshots", "servers"} {
		if left := p.onArray(kind); len(left) > 0 {
			p.t.Errorf("%d %s are left on the array, such as %v", len(left), kind, left[0])
		}
	}
}

// newPools installs the definitions, the controller and a pool, and starts array and the node's stand-in.
func newPools(t *testing.T) *poolsCluster {
	t.Helper()
	p := newPoolsCluster(t, "overlay-pools")
	p.startArray()
	p.stub = newStubNode(t, p.node)
	if err := os.MkdirAll(p.socketDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	p.stub.serve(t, filepath.Join(p.socketDir(), "node.sock"))
	p.launch("registrar", p.tool, "registrar", "--driver="+poolsDriver, "--csi-socket="+filepath.Join(p.socketDir(), "node.sock"),
		"--kubelet-root="+p.kubeletDir())
	p.install()
	p.feed(p.objects(), "apply", "--server-side", "-f", "-")
	p.wantDriver()
	p.wantPool("Ready")
	return p
}

// newPoolsCluster finds the cluster, and installs the definitions of the custom resources.
func newPoolsCluster(t *testing.T, overlay string) *poolsCluster {
	t.Helper()
	p := &poolsCluster{cluster: newCluster(t), whole: t, overlay: overlay}
	p.node = p.cluster.node()
	p.kubectl("apply", "--server-side", "-k", filepath.Join("..", "crds"))
	for _, kind := range []string{"poolclasses", "pools", "poolvolumes", "poolsnapshots", "poolattachments", "poolnodes"} {
		p.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/"+kind+".pools.katbox.io")
	}
	p.eventually("a ServiceAccount in namespace default", func() error {
		_, err := p.tryKubectl("", "get", "serviceaccount", "default")
		return err
	})
	return p
}

// wantDriver waits until the kubelet knows the driver.
func (p *poolsCluster) wantDriver() {
	p.t.Helper()
	p.eventually("the driver is registered", func() error {
		if out := p.kubectl("get", "csinode", p.node, "-o", "jsonpath={.spec.drivers[*].name}"); !strings.Contains(out, poolsDriver) {
			return fmt.Errorf("CSINode has %q", out)
		}
		return nil
	})
}

// wantPool waits until the pool has a state.
func (p *poolsCluster) wantPool(state string) {
	p.t.Helper()
	p.eventually("the pool is "+state, func() error {
		out, err := p.tryKubectl("", "get", "vpsa", "a", "-o", "jsonpath={.status.state}")
		if err == nil && out != state {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
}

// accessKey is the Secret with the array's access key, which goes with the namespace.
const accessKey = `{apiVersion: v1, kind: Secret, metadata: {namespace: katbox, name: array}, stringData: {token: token}}`

// objects are all that is made before the first claim.
func (p *poolsCluster) objects() string {
	return accessKey + fmt.Sprintf(`
---
apiVersion: pools.katbox.io/v1alpha1
kind: PoolClass
metadata: {name: fast}
spec: {default: true}
---
apiVersion: pools.katbox.io/v1alpha1
kind: Pool
metadata: {name: a}
spec:
  className: fast
  # A request without an answer is in doubt for twice this time: then the array works on it no more.
  vpsa: {endpoint: %q, credentialsSecretRef: {name: array}, requestTimeout: 15s}
---
apiVersion: pools.katbox.io/v1alpha1
kind: PoolNode
metadata: {name: %s}
spec: {addresses: [10.1.0.1], iqn: "iqn.2026-11.io.katbox:e2e:node"}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: %[3]s, allowVolumeExpansion: true}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: fast}
driver: %[3]s
deletionPolicy: Delete
`, p.url, p.node, poolsDriver)
}
