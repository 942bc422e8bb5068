//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
)

// floorDriver is the CSI driver of rktool, for which a volume is an empty directory: what Kubernetes itself takes for a
// claim.
const floorDriver = "dir.realkubelet"

// floor is that driver with a provisioner that may do as much as that of the local pools. NODE and BIN are replaced.
const floor = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: ` + floorDriver + `}
spec: {attachRequired: false, podInfoOnMount: false, volumeLifecycleModes: [Persistent]}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: floor}
provisioner: ` + floorDriver + `
volumeBindingMode: Immediate
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: floor}
spec:
  selector: {matchLabels: {app: floor}}
  template:
    metadata: {labels: {app: floor}}
    spec:
      nodeName: "NODE"
      serviceAccountName: csi-provisioner
      terminationGracePeriodSeconds: 1
      containers:
      - name: driver
        image: "localhost/realkubelet/busybox:1"
        imagePullPolicy: Never
        command: [/bin-of-rktool/rktool, csidir, --node=NODE, --driver=` + floorDriver + `, --data=/volumes]
        volumeMounts: [{name: csi, mountPath: /csi}, {name: volumes, mountPath: /volumes}, {name: bin, mountPath: /bin-of-rktool}]
      - name: provisioner
        image: "localhost/realkubelet/csi-provisioner:1"
        imagePullPolicy: Never
        args: [--csi-address=/csi/csi.sock, --feature-gates=Topology=false, --extra-create-metadata=true, --timeout=180s,
          --kube-api-qps=1000, --kube-api-burst=2000, --worker-threads=200]
        volumeMounts: [{name: csi, mountPath: /csi}]
      volumes: [{name: csi, emptyDir: {}}, {name: volumes, emptyDir: {}}, {name: bin, hostPath: {path: "BIN", type: Directory}}]
`

// rateOfFloor measures the claims of that driver as those of the pools are measured.
func (l *localCluster) rateOfFloor(c *crowd, claims int) (made, gone float64) {
	l.t.Helper()
	bin := filepath.Dir(l.tool)
	rights := filepath.Join(bin, "manifests", "rbac", "csi-provisioner.yaml")
	l.kubectl("apply", "-f", rights)
	manifest := strings.NewReplacer("NODE", l.nodeName(rateNode), "BIN", bin).Replace(floor)
	l.feed(manifest, "apply", "-f", "-")
	l.kubectl("rollout", "status", "deployment/floor", "--timeout", patience.String())
	c.spec = crowdSpec("floor", "1Mi")
	made = l.rate(c, "made, of a driver of empty directories", claims, c.make, binding)
	gone = l.rate(c, "deleted, of a driver of empty directories", claims, c.remove, releasing)
	l.feed(manifest, "delete", "-f", "-")
	l.kubectl("delete", "-f", rights)
	return made, gone
}
