//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"text/template"
)

// pod is a pod with one volume of Katbox's, named scratch.
type pod struct {
	Name string
	// Scripts are the containers' shell scripts. The volume is at /scratch.
	Scripts []string
	// Security is the pod's securityContext, in YAML; ReadOnly says that the
	// volume, MountReadOnly that its mounts in the containers can only be read.
	Security                string
	ReadOnly, MountReadOnly bool
	// SubPaths lets each container see a directory of its own of the volume, which is named like the container.
	SubPaths bool
	// UserNamespace lets root of the pod be nobody on the node. Such a pod cannot have the node's network.
	UserNamespace bool
	// Node is where the pod runs; empty for where the scheduler puts it.
	Node string
}

var podYAML = template.Must(template.New("pod").Parse(`---
apiVersion: v1
kind: Pod
metadata: {name: {{.Name}}}
spec:
  restartPolicy: Never
{{- if .UserNamespace}}
  hostUsers: false
{{- else}}
  hostNetwork: true
{{- end}}
{{- if .Node}}
  nodeName: {{.Node}}
{{- end}}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 2
  securityContext: { {{.Security}} }
  containers:
{{- range $i, $script := .Scripts}}
    - name: c{{$i}}
      image: {{$.Image}}
      command: [sh, -c, {{printf "%q" $script}}]
      volumeMounts: [{name: scratch, mountPath: /scratch, readOnly: {{$.MountReadOnly}}{{if $.SubPaths}}, subPath: c{{$i}}{{end}}}]
{{- end}}
  volumes:
    - name: scratch
      csi: {driver: ` + driverName + `, readOnly: {{.ReadOnly}}}
`))

// status is what is asked about a pod.
type status struct {
	Metadata struct{ UID, Name string }
	Status   struct {
		Phase             string
		ContainerStatuses []struct {
			RestartCount int
			ContainerID  string
		}
	}
}

// create creates a pod, and returns its UID.
func (c *cluster) create(p pod) string {
	c.t.Helper()
	var text strings.Builder
	p.write(&text, c.t, c.busybox())
	c.feed(text.String(), "create", "-f", "-")
	return c.status(p.Name).Metadata.UID
}

// write writes a pod's manifest, as a document of YAML.
func (p pod) write(w io.Writer, t *testing.T, image string) {
	t.Helper()
	if err := podYAML.Execute(w, struct {
		pod
		Image string
	}{p, image}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) status(name string) status {
	c.t.Helper()
	var s status
	c.get(&s, "pod", name)
	return s
}

// wantPhase waits until the pod is in a phase. Another one that is final ends the
// test.
func (c *cluster) wantPhase(name, phase string) {
	c.t.Helper()
	c.eventually("pod "+name+" is "+phase, func() error {
		switch now := c.status(name).Status.Phase; now {
		case phase:
			return nil
		case "Succeeded", "Failed":
			c.t.Fatalf("pod %s is %s, want %s: %s\n%s", name, now, phase,
				c.kubectl("logs", name, "--all-containers"), c.kubectl("describe", "pod", name))
			return nil
		default:
			return fmt.Errorf("it is %s", now)
		}
	})
}

// end deletes a pod and waits until it is gone.
func (c *cluster) end(name string) {
	c.t.Helper()
	c.kubectl("delete", "pod", name, "--wait", "--timeout", patience.String())
}

// succeeds runs a pod to its end and returns its UID.
func (c *cluster) succeeds(p pod) string {
	c.t.Helper()
	uid := c.create(p)
	c.wantPhase(p.Name, "Succeeded")
	c.end(p.Name)
	return uid
}

// want fails unless a file of a retained volume has the content.
func (c *cluster) want(path, content string) {
	c.t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		c.t.Error(err)
	} else if string(got) != content {
		c.t.Errorf("%s has %q, want %q", path, got, content)
	}
}
