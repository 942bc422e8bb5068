//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"time"
)

// testStatefulSets: one on NFS and one on iSCSI; what their pods wrote is there when they come back.
func (a *arrayCluster) testStatefulSets() {
	const replicas = 2
	for _, class := range []string{"nfs", "ext4"} {
		a.feed(fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  serviceName: %[1]s
  replicas: %[2]d
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: "localhost/realkubelet/busybox:1"
        imagePullPolicy: Never
        command: [sh, -c, "cat /v/*; echo $0 >>/v/$HOSTNAME; hostname >>/v/log; exec sleep 99999"]
        volumeMounts: [{name: v, mountPath: /v}]
  volumeClaimTemplates:
  - metadata: {name: v}
    spec:
      storageClassName: %[1]s
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
`, class, replicas), "apply", "-f", "-")
	}
	sets := func(what func(class, pod string)) {
		for _, class := range []string{"nfs", "ext4"} {
			for i := range replicas {
				what(class, fmt.Sprintf("%s-%d", class, i))
			}
		}
	}
	sets(func(class, pod string) {
		a.eventually(pod+" exists", func() error { _, err := a.tryKubectl("", "get", "pod", pod); return err })
		a.running(pod)
		a.exec(pod, "echo "+pod+" >/v/content && sync")
		if out := a.exec(pod, "grep ' /v ' /proc/mounts"); !strings.Contains(out, class) {
			a.t.Errorf("%s has mounted %s", pod, out)
		}
	})
	a.kubectl("delete", "pods", "-l", "app in (nfs,ext4)", "--wait=true")
	sets(func(_, pod string) {
		a.eventually(pod+" exists again", func() error { _, err := a.tryKubectl("", "get", "pod", pod); return err })
		a.running(pod)
		if out := a.exec(pod, "cat /v/content"); out != pod {
			a.t.Errorf("%s has the content %q", pod, out)
		}
	})
	a.kubectl("delete", "statefulset", "nfs", "ext4", "--wait=true")
	a.kubectl("delete", "pvc", "--all", "--wait=true", "--timeout", patience.String())
}

// testAccessModes: a pod for each access mode, and two where two are allowed.
func (a *arrayCluster) testAccessModes() {
	one := claim{name: "one", class: "ext4"}
	many := claim{name: "many", class: "nfs", access: "ReadWriteMany"}
	only := claim{name: "only", class: "ext4", access: "ReadWriteOncePod"}
	device := claim{name: "device", mode: "Block", class: "ext4"}
	devices := claim{name: "devices", mode: "Block", class: "ext4", access: "ReadWriteMany"}
	pods := []container{
		{name: "one", claim: one}, {name: "other", claim: one}, {name: "many", claim: many}, {name: "more", claim: many},
		{name: "only", claim: only}, {name: "device", claim: device}, {name: "devices", claim: devices}, {name: "devices-too", claim: devices},
	}
	a.apply(one.String(), many.String(), only.String(), device.String(), devices.String())
	for _, pod := range pods {
		pod.script = sleep
		a.apply(pod.String())
	}
	for _, pod := range pods {
		a.running(pod.name)
	}
	// Both pods of a node, and both of a volume on NFS, see what the other writes.
	for _, pair := range [][2]string{{"one", "other"}, {"many", "more"}} {
		a.exec(pair[0], "echo hello >/v/from && sync")
		if out := a.exec(pair[1], "cat /v/from"); out != "hello" {
			a.t.Errorf("%s has not what %s wrote: %q", pair[1], pair[0], out)
		}
	}
	for _, pair := range [][2]string{{"device", "device"}, {"devices", "devices-too"}} {
		a.exec(pair[0], "echo hello | dd of=/dev/v bs=4096 count=1 conv=sync,fsync 2>/dev/null")
		if out := a.exec(pair[1], "head -c 5 /dev/v"); out != "hello" {
			a.t.Errorf("%s has not what %s wrote: %q", pair[1], pair[0], out)
		}
		if out := a.exec(pair[1], "blockdev --getsize64 /dev/v"); out != fmt.Sprint(1<<30) {
			a.t.Errorf("the device of %s has %s bytes", pair[1], out)
		}
	}

	// A second pod of ReadWriteOncePod waits, and gets the volume when the first is gone.
	a.exec("only", "echo hello >/v/from && sync")
	a.apply(container{name: "second", script: sleep, claim: only}.String())
	time.Sleep(5 * time.Second) // it has the time to be wrong
	if phase := a.kubectl("get", "pod", "second", "-o", "jsonpath={.status.phase}"); phase != "Pending" {
		a.t.Errorf("a second pod of a claim with ReadWriteOncePod is %s", phase)
	}
	a.kubectl("delete", "pod", "only", "--wait=true")
	a.running("second")
	if out := a.exec("second", "cat /v/from"); out != "hello" {
		a.t.Errorf("the second pod has not what the first wrote: %q", out)
	}

	a.readOnlyMany(one, "one")
	a.readOnlyMany(many, "many")
	a.kubectl("delete", "pods", "--all", "--wait=true")
	a.kubectl("delete", "pvc", "--all", "--wait=true", "--timeout", patience.String())
	a.kubectl("delete", "volumesnapshots", "--all", "--wait=true", "--timeout", patience.String())
}

// readOnlyMany makes a volume with ReadOnlyMany out of one that a pod uses: two pods read it, none writes.
func (a *arrayCluster) readOnlyMany(from claim, pod string) {
	a.t.Helper()
	a.snapshot("of-"+from.name, from)
	fixed := claim{name: "fixed-" + from.name, class: from.class, access: "ReadOnlyMany", source: "of-" + from.name}
	readers := []container{
		{name: fixed.name + "-1", script: sleep, claim: fixed, readOnly: true},
		{name: fixed.name + "-2", script: sleep, claim: fixed},
	}
	a.apply(fixed.String())
	want := a.exec(pod, "sha256sum </v/from")
	for _, reader := range readers {
		a.apply(reader.String())
	}
	for _, reader := range readers {
		a.running(reader.name)
		if out := a.exec(reader.name, "sha256sum </v/from"); out != want {
			a.t.Errorf("%s reads %q, want %q", reader.name, out, want)
		}
		if out := a.exec(reader.name, "echo no >/v/no 2>/dev/null && echo written || echo refused"); out != "refused" {
			a.t.Errorf("%s: %s", reader.name, out)
		}
	}
}
