//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// arrayCluster is a node with volumes of an array, whose data plane is in the same kernel.
type arrayCluster struct {
	*poolsCluster
	// data is a directory of the array's.
	data string
}

func (a *arrayCluster) in(t *testing.T) *arrayCluster {
	return &arrayCluster{poolsCluster: a.poolsCluster.in(t), data: a.data}
}

// newArrayCluster starts the array, and installs daemon and controller, as an operator does.
func newArrayCluster(t *testing.T) *arrayCluster {
	t.Helper()
	a := &arrayCluster{poolsCluster: newPoolsCluster(t, "overlay-array"), data: os.Getenv("KATBOX_E2E_ARRAY")}
	address := a.kubectl("get", "node", a.node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
	a.arrayFlags = []string{
		"--state", filepath.Join(a.data, "array.json"), "--no-recycle-bin", "--data-plane", "kernel", "--data-dir", a.data,
		"--portal", "10.254.253.1,10.254.253.2", "--source-address", address,
	}
	a.startArray()
	a.install()
	a.feed(a.classes(), "apply", "--server-side", "-f", "-")
	a.wantDriver()
	a.wantPool("Ready")
	a.eventually("the node has told its addresses", func() error {
		_, err := a.tryKubectl("", "get", "poolnode", a.node)
		return err
	})
	return a
}

// classes are all that is made before the first claim.
func (a *arrayCluster) classes() string {
	text := accessKey + fmt.Sprintf(`
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
  vpsa: {endpoint: %q, credentialsSecretRef: {name: array}}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: fast}
driver: %s
deletionPolicy: Delete
`, a.url, poolsDriver)
	for _, class := range []struct{ name, parameters string }{
		{"nfs", "protocol: nfs"},
		{"ext4", "protocol: iscsi, csi.storage.k8s.io/fstype: ext4"},
		{"xfs", "protocol: iscsi, csi.storage.k8s.io/fstype: xfs"},
	} {
		text += fmt.Sprintf(`
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: %s
parameters: {%s}
allowVolumeExpansion: true
`, class.name, poolsDriver, class.parameters)
	}
	return text
}

// order orders something of the array by its administration.
func (a *arrayCluster) order(method, path, body string) {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.url+"/fake/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		a.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		a.t.Fatalf("the array says to %s %s: %s", method, path, text)
	}
}

// clear deletes what a scenario that failed has left, and waits.
func (a *arrayCluster) clear() {
	a.t.Helper()
	for _, kinds := range []string{"statefulsets,deployments,pods", "pvc,volumesnapshots"} {
		a.kubectl("delete", kinds, "--all", "--wait=true", "--timeout", patience.String())
	}
	a.eventually("nothing is left of the scenario before", func() error {
		out, err := a.tryKubectl("", "get", "pv,volumeattachments,volumesnapshotcontents", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
}

// container is what a pod of these tests runs, with one claim, which is at /v or /dev/v.
type container struct {
	name, script string
	claim        claim
	readOnly     bool
}

func (c container) String() string {
	use := fmt.Sprintf("volumeMounts: [{name: v, mountPath: /v, readOnly: %t}]", c.readOnly)
	if c.claim.mode == "Block" {
		use = "volumeDevices: [{name: v, devicePath: /dev/v}]"
	}
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  hostNetwork: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: "localhost/realkubelet/busybox:1"
    imagePullPolicy: Never
    command: [sh, -c, %q]
    %s
  volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]
`, c.name, c.script, use, c.claim.name)
}

// sleep is a script that does nothing.
const sleep = "exec sleep 99999"

// running waits until pods run.
func (p *poolsCluster) running(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.phase(name, "Running")
	}
}

// phase waits until a pod has a phase, and fails with the description of the pod.
func (p *poolsCluster) phase(name, phase string) {
	p.t.Helper()
	if out, err := p.tryKubectl("", "wait", "--for=jsonpath={.status.phase}="+phase, "--timeout", patience.String(), "pod/"+name); err != nil {
		logs, _ := p.tryKubectl("", "logs", name)
		p.t.Fatalf("%v\n%s\n%s\n%s\n%s", err, out, p.kubectl("describe", "pod", name), logs,
			p.kubectl("-n", namespace, "logs", "-l", "app.kubernetes.io/name=katbox", "--tail=30"))
	}
}

// exec runs a script in a pod, and returns what it prints.
func (p *poolsCluster) exec(name, script string) string {
	p.t.Helper()
	return strings.TrimSpace(p.kubectl("exec", name, "--", "sh", "-c", script))
}

// answer runs a script with a claim in a pod of its own, and returns what it prints.
func (a *arrayCluster) answer(c claim, script string) string {
	a.t.Helper()
	name := "look-" + c.name
	a.apply(container{name: name, script: script, claim: c}.String())
	a.phase(name, "Succeeded")
	out := strings.TrimSpace(a.kubectl("logs", name))
	a.kubectl("delete", "pod", name, "--wait=true")
	return out
}
