//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// optInCluster is a cluster of two nodes whose API server converts emptyDir volumes. The first node alone has a daemon.
type optInCluster struct{ *cluster }

// optInPod is what is asked about a pod.
type optInPod struct {
	Metadata struct{ UID string }
	Spec     struct {
		NodeName string
		Volumes  []struct {
			Name     string
			EmptyDir *struct{ Medium string }
			CSI      *struct{ VolumeAttributes map[string]string }
		}
	}
	Status struct{ Phase string }
}

// TestOptIn: a label on a namespace is all that its pods need, and without it they are as before. Pods of a node without a
// daemon go elsewhere, or their events say what is missing.
func TestOptIn(t *testing.T) {
	if os.Getenv("KATBOX_E2E_OPTIN") == "" {
		t.Skip("the cluster is another: \"make e2e SUITE=optin\" runs this")
	}
	c := optInCluster{newCluster(t)}
	c.kubectl("label", "node", c.nodeName(1), "disk=scratch")
	began := time.Now()
	c.helm(c.values()+"nodeSelector: {disk: scratch}\noptIn: {enabled: true}\n",
		"install", "katbox", charts.now, "--values", "-", "--create-namespace", "--set", "logs.dir="+filepath.Join(c.state, "podlogs"))
	c.rolledOut()
	c.cluster = c.inNamespace("ml")
	c.kubectl("label", "namespace", "ml", "katbox.io/scratch=keep")
	c.wantConverted("", true)

	c.job()
	t.Logf("from helm install to the file of a Job that failed and was deleted: %s", time.Since(began).Round(time.Second))
	for _, test := range []struct {
		name string
		run  func(optInCluster)
	}{
		{"sidecar", optInCluster.sidecar},
		{"stateful set", optInCluster.statefulSet},
		{"labels of pods", optInCluster.labels},
		{"a node without a daemon", optInCluster.elsewhere},
		{"no label", optInCluster.noLabel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(optInCluster{c.in(t)}) })
	}
}

// manifest is a pod of a container that mounts an emptyDir at /work and runs a script.
func (c optInCluster) manifest(name, labels, more, script string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}}, spec: {%s}}`, name, labels, c.spec(more, script))
}

func (c optInCluster) spec(more, script string) string {
	return fmt.Sprintf(`restartPolicy: Never, automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, %s
  containers: [{name: main, image: %q, command: [sh, -c, %q], volumeMounts: [{name: work, mountPath: /work}]}],
  volumes: [{name: work, emptyDir: {sizeLimit: 64Mi}}, {name: shm, emptyDir: {medium: Memory}}]`, more, c.busybox(), script)
}

func (c optInCluster) pod(name string) (p optInPod) {
	c.t.Helper()
	c.get(&p, "pod", name)
	return p
}

// converted reports whether the volume work is Katbox's. The other one, in memory, never is.
func (p optInPod) converted() (bool, error) {
	if len(p.Spec.Volumes) != 2 || p.Spec.Volumes[1].EmptyDir == nil || p.Spec.Volumes[1].EmptyDir.Medium != "Memory" {
		return false, fmt.Errorf("the pod has the volumes %+v", p.Spec.Volumes)
	}
	work := p.Spec.Volumes[0]
	if work.CSI != nil && (work.CSI.VolumeAttributes["converted"] != "true" || work.CSI.VolumeAttributes["sizeLimit"] != "64Mi") {
		return false, fmt.Errorf("the volume has the attributes %v", work.CSI.VolumeAttributes)
	}
	return work.CSI != nil, nil
}

// wantConverted waits until the API server converts a pod with these labels, or does not: it learns of a policy and of labels
// within some seconds.
func (c optInCluster) wantConverted(labels string, want bool) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("a pod with {%s} is converted: %t", labels, want), func() error {
		out, err := c.tryKubectl(c.manifest("trial", labels, "", "true"), "create", "--dry-run=server", "-o", "json", "-f", "-")
		if err != nil {
			c.t.Fatal(err)
		}
		var p optInPod
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			c.t.Fatal(err)
		}
		switch converted, err := p.converted(); {
		case err != nil:
			return err
		case converted != want:
			return fmt.Errorf("its volumes are %+v", p.Spec.Volumes)
		}
		return nil
	})
}

// job: a Job whose manifest knows nothing of Katbox fails and is deleted, and its file is there.
func (c optInCluster) job() {
	c.t.Helper()
	c.feed(fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {backoffLimit: 0, template: {spec: {%s}}}}`,
		c.spec("", "echo lost the GPU >/work/log; exit 1")), "create", "-f", "-")
	c.kubectl("wait", "--for=condition=Failed", "job/train", "--timeout", patience.String())
	pod := c.kubectl("get", "pods", "-l", "batch.kubernetes.io/job-name=train", "-o", "jsonpath={.items[*].metadata.name}")
	c.kubectl("delete", "job", "train", "--wait", "--timeout", patience.String())
	c.eventually("the file of the Job", func() error {
		got, err := c.tryKatbox("cat", "ml/"+pod+":log")
		if err == nil && got != "lost the GPU\n" {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

// sidecar: a container and a sidecar share the volume, which is kept; the one in memory is not.
func (c optInCluster) sidecar() {
	const alongside = `initContainers: [{name: side, image: %q, restartPolicy: Always, volumeMounts: [{name: work, mountPath: /work},
    {name: shm, mountPath: /shm}], command: [sh, -c, "echo side >/work/side; echo gone >/shm/file; sleep 1h"]}],`
	c.feed(c.manifest("pair", "", fmt.Sprintf(alongside, c.busybox()),
		"until test -e /work/side; do sleep 0.1; done; echo main >/work/main"), "create", "-f", "-")
	c.wantPhase("pair", "Succeeded")
	if converted, err := c.pod("pair").converted(); !converted || err != nil {
		c.t.Errorf("it is converted: %t, %v", converted, err)
	}
	c.end("pair")
	for file, want := range map[string]string{"side": "side\n", "main": "main\n"} {
		if got := c.katbox("cat", "ml/pair:"+file); got != want {
			c.t.Errorf("%s has %q", file, got)
		}
	}
	c.wantIn(c.katbox("ls"), "pair")
}

// statefulSet: each pod of a name has a volume of its own, and what the one before left stays. All go to the node with a daemon.
func (c optInCluster) statefulSet() {
	spec := strings.Replace(c.spec("", "echo $HOSTNAME >>/work/log; sleep 1h"), "restartPolicy: Never, ", "", 1)
	c.feed(fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, serviceName: none,
  podManagementPolicy: Parallel, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {%s}}}}`, spec),
		"create", "-f", "-")
	c.kubectl("rollout", "status", "statefulset/db", "--timeout", patience.String())
	var uids []string
	for _, name := range []string{"db-0", "db-1", "db-2"} {
		p := c.pod(name)
		if converted, err := p.converted(); !converted || err != nil || p.Spec.NodeName != c.nodeName(1) {
			c.t.Errorf("%s is on %s, and is converted: %t, %v", name, p.Spec.NodeName, converted, err)
		}
		uids = append(uids, p.Metadata.UID)
	}
	c.eventually("db-0 writes", func() error { _, err := os.Stat(c.file(uids[0], "log")); return err })
	c.end("db-0")
	c.kubectl("rollout", "status", "statefulset/db", "--timeout", patience.String())
	if now := c.pod("db-0").Metadata.UID; now == uids[0] {
		c.t.Fatal("db-0 is the pod from before")
	}
	c.want(c.file(uids[0], "log"), "db-0\n")
	c.kubectl("delete", "statefulset", "db", "--wait", "--timeout", patience.String())
}

// labels: a pod's own label counts in any namespace, but not against that of the namespace that forbids it.
func (c optInCluster) labels() {
	c.wantConverted("katbox.io/scratch: drop", false)
	outside := optInCluster{c.inNamespace("web")}
	outside.wantConverted("", false)
	outside.wantConverted("katbox.io/scratch: keep", true)
	outside.kubectl("label", "namespace", "web", "katbox.io/scratch=drop")
	outside.wantConverted("katbox.io/scratch: keep", false)
}

// elsewhere: a pod does not go to a node without a daemon. One that has to waits, and says what for; without the affinity
// it says that the node has no driver.
func (c optInCluster) elsewhere() {
	there := fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s},", c.nodeName(2))
	c.feed(c.manifest("waits", "", there, "true"), "create", "-f", "-")
	c.wantEvent("waits", "FailedScheduling", "node affinity")
	c.end("waits")

	c.helm("", "upgrade", "katbox", charts.now, "--reuse-values", "--set", "optIn.nodeAffinity=None")
	c.eventually("no affinity", func() error {
		out, err := c.tryKubectl(c.manifest("trial", "", "", "true"), "create", "--dry-run=server", "-o", "yaml", "-f", "-")
		if err == nil && strings.Contains(out, "topology.katbox.csi/node") {
			err = fmt.Errorf("it is\n%s", out)
		}
		return err
	})
	c.feed(c.manifest("stuck", "", there, "true"), "create", "-f", "-")
	c.wantEvent("stuck", "FailedMount", driverName+" not found in the list of registered CSI drivers")
	c.end("stuck")
	c.helm("", "upgrade", "katbox", charts.now, "--reuse-values", "--set", "optIn.nodeAffinity=Required")
}

// wantEvent waits for an event of a pod.
func (c optInCluster) wantEvent(pod, reason, text string) {
	c.t.Helper()
	c.eventually("the event "+reason+" of pod "+pod, func() error {
		var events struct{ Items []struct{ Message string } }
		c.get(&events, "events", "--field-selector", "reason="+reason+",involvedObject.name="+pod)
		for _, e := range events.Items {
			if strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("there are %v, none with %q", events.Items, text)
	})
}

// noLabel: once the label is taken away, pods are as they were, on any node; those that run stay.
func (c optInCluster) noLabel() {
	c.feed(c.manifest("kept", "", "", "echo kept >/work/log; sleep 1h"), "create", "-f", "-")
	c.wantPhase("kept", "Running")
	c.kubectl("label", "namespace", "ml", "katbox.io/scratch-")
	c.wantConverted("", false)
	before := strings.Fields(c.katbox("ls"))
	there := fmt.Sprintf("nodeSelector: {kubernetes.io/hostname: %s},", c.nodeName(2))
	c.feed(c.manifest("plain", "", there, "echo x >/work/log"), "create", "-f", "-")
	c.wantPhase("plain", "Succeeded")
	if converted, err := c.pod("plain").converted(); converted || err != nil {
		c.t.Errorf("it is converted: %t, %v", converted, err)
	}
	c.end("plain")
	if after := strings.Fields(c.katbox("ls")); slices.Contains(after, "plain") || len(after) != len(before) {
		c.t.Errorf("the list was %q, and is %q", before, after)
	}
	uid := c.pod("kept").Metadata.UID
	c.end("kept")
	c.want(c.file(uid, "log"), "kept\n")
}
