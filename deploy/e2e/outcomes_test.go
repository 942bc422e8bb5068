//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ending is a way in which a pod ends, and what Katbox is to say of it.
type ending struct {
	name, want string
	// script is the container's, policy the pod's restartPolicy, more are lines of its spec, limits those of
	// its container.
	script, policy, more, limits string
	// job: the pod is one of a Job, of whose spec more are lines.
	job bool
	// act is done once the pod runs.
	act func(c *cluster, pod string)
}

// waits sleeps until the pod is told to go, and then exits with 0.
const waits = "trap 'exit 0' TERM; sleep 1000 & wait"

func deletes(c *cluster, pod string) {
	c.kubectl("delete", "pod", pod, "--wait=false")
}

// deadline sets a deadline that is over. Set before the pod runs, it could be over before there is a volume.
func deadline(kind, name string) func(*cluster, string) {
	return func(c *cluster, _ string) {
		c.kubectl("patch", kind, name, "-p", `{"spec": {"activeDeadlineSeconds": 1}}`)
	}
}

// endings are those that can be brought about at will. That of a pod that is deleted by force is seen by
// its kubelet alone, which stops it all the same.
func endings() []ending {
	return []ending{
		{name: "exit-0", script: "exit 0", want: "Succeeded"},
		{name: "exit-3", script: "exit 3", want: "Failed"},
		{name: "told", script: waits, act: deletes, want: "Stopped"},
		{name: "signalled", script: "trap 'exit 143' TERM; sleep 1000 & wait", act: deletes, want: "Stopped"},
		{name: "killed", script: "trap '' TERM; while :; do sleep 1; done", act: deletes, want: "Failed"},
		{name: "deadline", script: waits, act: deadline("pod", "deadline"), want: "Failed"},
		{name: "oom", script: "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", limits: "{memory: 32Mi}", want: "Failed"},
		{name: "retried", script: "[ -e /scratch/again ] || { touch /scratch/again; exit 5; }", policy: "OnFailure", want: "Succeeded"},
		{name: "forced", script: waits, act: func(c *cluster, pod string) {
			c.kubectl("delete", "pod", pod, "--force", "--grace-period=0", "--wait=false")
		}},
		{name: "job", script: "exit 0", job: true, more: "completions: 1\n  completionMode: Indexed", want: "Succeeded"},
		{name: "job-late", script: waits, job: true, more: "backoffLimit: 0", act: deadline("job", "job-late"), want: "Stopped"},
	}
}

// yaml is the pod, or the Job.
func (e ending) yaml(c *cluster) string {
	policy, limits := e.policy, e.limits
	if policy == "" {
		policy = "Never"
	}
	if limits == "" {
		limits = "{}"
	}
	spec := fmt.Sprintf(`restartPolicy: %s
hostNetwork: true
automountServiceAccountToken: false
terminationGracePeriodSeconds: 3
containers:
  - name: c
    image: %s
    command: [sh, -c, %q]
    resources: {limits: %s}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
volumes: [{name: scratch, csi: {driver: %s}}]
`, policy, c.busybox(), e.script, limits, driverName)
	indented := func(by string) string { return by + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n"+by) }
	if e.job {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec:\n  %s\n  template:\n    spec:\n%s\n",
			e.name, e.more, indented("      "))
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n%s\n  %s\n", e.name, indented("  "), e.more)
}

// testEndings lets pods end in all ways, and wants that of each the outcome is known. forced is that of a
// pod that is deleted by force. outcomeOf returns what is known of a pod whose volume is retained, as
// JSON shows it.
func (c *cluster) testEndings(jobs bool, forced string, outcomeOf func(uid string) (string, error)) {
	uids := map[string]string{}
	for _, e := range endings() {
		if e.job && !jobs {
			continue
		}
		c.feed(e.yaml(c), "create", "-f", "-")
		uids[e.name] = ""
	}
	for _, e := range endings() {
		if _, made := uids[e.name]; !made {
			continue
		}
		selector := []string{"pods", "--field-selector", "metadata.name=" + e.name}
		if e.job {
			selector = []string{"pods", "--selector", "job-name=" + e.name}
		}
		name := ""
		c.eventually("pod of "+e.name+" has begun", func() error {
			var list struct{ Items []status }
			c.get(&list, selector...)
			if len(list.Items) != 1 || list.Items[0].Status.Phase == "Pending" {
				return fmt.Errorf("%+v", list.Items)
			}
			uids[e.name], name = list.Items[0].Metadata.UID, list.Items[0].Metadata.Name
			return nil
		})
		if e.act != nil {
			e.act(c, name)
		}
	}
	for _, e := range endings() {
		uid, made := uids[e.name]
		if !made || e.want == "" {
			continue
		}
		c.eventually("the outcome of "+e.name, func() error {
			got, err := outcomeOf(uid)
			if err == nil && got != e.want {
				err = fmt.Errorf("it is %q, want %s", got, e.want)
			}
			return err
		})
	}
	// By now it is known, if it ever is.
	c.eventually("the volume of the pod that was deleted by force", func() error {
		got, err := outcomeOf(uids["forced"])
		if err == nil && got != forced {
			return fmt.Errorf("it is %q, want %q", got, forced)
		}
		return err
	})
	// What is deleted afterwards stays what it was.
	c.kubectl("delete", "pods", "exit-0", "exit-3", "--wait", "--timeout", patience.String())
	for name, want := range map[string]string{"exit-0": "Succeeded", "exit-3": "Failed"} {
		if got, err := outcomeOf(uids[name]); err != nil || got != want {
			c.t.Errorf("once it is deleted %s is %q, %v", name, got, err)
		}
	}
	c.kubectl("delete", "pods,jobs", "--all", "--wait", "--timeout", patience.String())
}

// podsAPI returns nil if the kubelet serves its pods to programs on the node, as it does from 1.37.
func (c *cluster) podsAPI() error {
	_, err := os.Stat(filepath.Join(c.kubeletDir(), "pods-api", "pods-api.sock"))
	return err
}

// testOutcomes: the kubelet tells how pods end, if it is new enough.
func (c *cluster) testOutcomes() {
	if err := c.podsAPI(); err != nil {
		c.t.Skipf("the kubelet is older than 1.37: %v", err)
	}
	c.wantMetric(`katbox_outcome_source_up{source="kubelet"}`, 1)
	c.testEndings(false, "Stopped", func(uid string) (string, error) {
		var list struct {
			Items []struct{ PodUID, Phase, Outcome string }
		}
		out, err := c.tryKatbox("ls", "-o", "json")
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return "", err
		}
		for _, v := range list.Items {
			if v.PodUID == uid && v.Phase == "Retained" {
				return v.Outcome, nil
			}
		}
		return "", fmt.Errorf("pod %s has no retained volume among %d", uid, len(list.Items))
	})
	c.restartKubelet()
	c.wantMetric(`katbox_outcome_source_up{source="kubelet"}`, 1)
	c.succeeds(pod{Name: "after-restart", Scripts: []string{"true"}})
}

// testGatewayOutcomes: the gateway tells how pods end, whatever node they are on.
func (c *gatewayCluster) testGatewayOutcomes() {
	there := *c.inNamespace("endings")
	// The API server does not know how a pod ended that was deleted by force. A kubelet that tells pods does.
	forced := "Stopped"
	if c.podsAPI() != nil {
		forced = ""
	}
	there.testEndings(true, forced, func(uid string) (string, error) {
		var list rvList
		if err := c.admin().read(&list, apiGroup+"/namespaces/endings/retainedvolumes?fieldSelector=spec.podUID%3D"+uid); err != nil {
			return "", err
		}
		if len(list.Items) != 1 {
			return "", fmt.Errorf("pod %s has %d retained volumes", uid, len(list.Items))
		}
		return list.Items[0].Status.Outcome, nil
	})
	c.finalized("endings")
}
