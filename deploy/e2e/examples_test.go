//go:build e2e

package e2e

import (
	"os"
	"strings"
)

// examples runs the pod and the job of deploy/examples, and finds their files where the
// comments there say.
func (c *cluster) examples() {
	c.t.Helper()
	// They are files beside the directory, which kustomize refuses unless told.
	manifests := c.kubectl("kustomize", "--load-restrictor", "LoadRestrictionsNone", "examples")
	c.feed(strings.ReplaceAll(manifests, "image: busybox:1.37\n", "image: "+c.busybox()+"\n"), "apply", "-f", "-")
	c.wantPhase("scratch", "Running")
	pod := c.status("scratch").Metadata.UID
	c.eventually("the example pod writes", func() error {
		_, err := os.Stat(c.file(pod, "log"))
		return err
	})
	c.end("scratch")
	c.wantText(c.file(pod, "log"), "20") // a date
	c.wantIn(c.katbox("cat", "default/scratch:log"), "20")

	c.kubectl("wait", "--for=condition=Failed", "job/nightly", "--timeout", patience.String())
	var pods struct{ Items []status }
	c.get(&pods, "pods", "--selector", "batch.kubernetes.io/job-name=nightly")
	if len(pods.Items) != 2 {
		c.t.Errorf("the example job had %d pods, want 2: %+v", len(pods.Items), pods.Items)
	}
	c.kubectl("delete", "job", "nightly", "--ignore-not-found", "--wait", "--timeout", patience.String())
	for _, pod := range pods.Items {
		c.wantText(c.file(pod.Metadata.UID, "log"), "the input ends in the middle")
		c.wantIn(c.katbox("tail", "default/"+pod.Metadata.Name+":log"), "the input ends in the middle")
	}
	c.wantNoMounts()
}

// wantText fails unless the text is in a file.
func (c *cluster) wantText(path, text string) {
	c.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		c.t.Error(err)
	} else if !strings.Contains(string(content), text) {
		c.t.Errorf("%s has %q, and not %q", path, content, text)
	}
}
