//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// leaves is a pod that leaves a file and fails.
func leaves(name, content string) pod {
	return pod{Name: name, Scripts: []string{fmt.Sprintf("mkdir /scratch/out; printf %%s %q > /scratch/out/log; exit 1", content)}}
}

// testRights: who sees what. It covers T18, T19 and T23 of the design.
func (c *gatewayCluster) testRights() {
	mine := []rv{c.retained("ci", 1, leaves("rights-a", "of a")), c.retained("ci", 2, leaves("rights-b", "of b"))}
	foreign := c.retained("other", 3, leaves("rights-c", "of c"))
	content := mine[0].path() + "/log?path=out%2Flog"

	for _, who := range []string{alice, bob, carol} {
		p := c.as(who)
		p.wantSees("ci", mine...)
		p.cannot([]string{"Forbidden"}, "get", "rv", "-n", "other")
		p.cannot([]string{"Forbidden"}, "get", "rv", "-A")
		p.cannot([]string{"Forbidden"}, "get", "--raw", foreign.path())
		p.cannot([]string{"Forbidden"}, "get", "--raw", foreign.path()+"/log?path=out%2Flog")
		// A name of another namespace is not found in one's own.
		p.cannot([]string{"NotFound"}, "get", "rv", "-n", "ci", foreign.Metadata.Name)
	}
	for _, who := range []string{alice, carol} {
		p := c.as(who)
		p.cannot([]string{"Forbidden"}, "get", "--raw", content)
		p.cannot([]string{"Forbidden"}, "get", "--raw", mine[0].path()+"/files")
		p.cannot([]string{"Forbidden"}, "delete", "rv", "-n", "ci", mine[0].Metadata.Name)
	}
	if got := c.as(bob).can("get", "--raw", content); got != "of a" {
		c.t.Errorf("bob reads %q", got)
	}
	c.as(bob).wantIn(c.as(bob).can("get", "--raw", mine[0].path()+"/files"), `"out"`)
	c.as(dave).cannot([]string{"Forbidden"}, "get", "rv", "-n", "ci")
	c.as(dave).cannot([]string{"Forbidden"}, "get", "--raw", content)

	// One volume alone, by its name.
	c.kubectl("-n", "ci", "create", "role", "one", "--verb=get",
		"--resource=retainedvolumes.katbox.io", "--resource-name="+mine[1].Metadata.Name)
	c.kubectl("-n", "ci", "create", "rolebinding", "one", "--role=one", "--user="+dave)
	c.eventually("dave's right", func() error {
		_, err := c.as(dave).run("get", "rv", "-n", "ci", mine[1].Metadata.Name)
		return err
	})
	c.as(dave).cannot([]string{"Forbidden"}, "get", "rv", "-n", "ci", mine[0].Metadata.Name)
	c.as(dave).cannot([]string{"Forbidden"}, "get", "rv", "-n", "ci")

	c.wantAudited(bob, mine[0].Metadata.Name, "out%2Flog")
	c.as(bob).can("delete", "rv", "-n", "ci", mine[0].Metadata.Name)
	c.as(alice).cannot([]string{"NotFound"}, "get", "rv", "-n", "ci", mine[0].Metadata.Name)
	c.as(alice).wantSees("ci", mine[1])
}

// wantSees fails unless a person's list of a namespace holds these volumes, and never another one. A
// replica may hear some seconds later that a node has volumes of the namespace.
func (p person) wantSees(ns string, want ...rv) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%s sees %v in %s", p.name, want, ns), func() error {
		missing := map[string]bool{}
		for _, v := range want {
			missing[v.Metadata.Name] = true
		}
		var others []string
		for _, v := range p.list(ns, "").Items {
			if v.Metadata.Namespace != ns {
				p.t.Errorf("%s sees %s in the list of %s", p.name, v, ns)
			}
			if !missing[v.Metadata.Name] {
				others = append(others, v.Metadata.Name)
			}
			delete(missing, v.Metadata.Name)
		}
		if len(others) > 0 {
			p.t.Errorf("%s sees %q in the list of %s", p.name, others, ns)
		}
		if len(missing) > 0 {
			return fmt.Errorf("not in the list: %q", slices.Sorted(maps.Keys(missing)))
		}
		return nil
	})
}

// wantAudited fails unless the API server's audit log and the gateway's log tell the same request.
func (c *gatewayCluster) wantAudited(user, name, path string) {
	c.t.Helper()
	for _, event := range c.audited() {
		if event.User.Username == user && event.ObjectRef.Name == name && event.ObjectRef.Subresource == "log" &&
			strings.Contains(event.RequestURI, path) && strings.Contains(c.gatewayLogs(), event.AuditID) {
			return
		}
	}
	c.t.Errorf("no event of %s reading %s that is in the gateway's log too", user, name)
}

// auditEvent is what the tests read of an event in the API server's audit log.
type auditEvent struct {
	AuditID, RequestURI, Stage string
	User                       struct{ Username string }
	ObjectRef                  struct{ Name, Subresource string }
	ResponseStatus             struct{ Code int }
}

// audited are the events of the API server's audit log.
func (c *gatewayCluster) audited() (events []auditEvent) {
	c.t.Helper()
	for line := range strings.Lines(string(c.secret("logs/audit.log"))) {
		var event auditEvent
		if err := json.Unmarshal([]byte(line), &event); err == nil { // the last line may be half written
			events = append(events, event)
		}
	}
	return events
}

// testKubectl: what unmodified kubectl does with the resource.
func (c *gatewayCluster) testKubectl() {
	job := c.job("nightly-29000000")
	var volumes []rv
	for n := range 3 {
		volumes = append(volumes, c.retained("ci", n+1, leaves(fmt.Sprintf("pages-%d", n), "x")))
	}
	p := c.as(alice)
	table := p.can("get", "rv", "-n", "ci")
	p.wantIn(table, "NAME", "POD", "OWNER", "SIZE", "AGE", "EXPIRES", volumes[0].Metadata.Name, "pages-1")
	p.wantIn(p.can("get", "rv", "-n", "ci", "-o", "wide"), "NODE", "POD-UID", volumes[1].Spec.PodUID, c.nodeName(2))
	p.wantIn(p.can("get", "rv", "-n", "ci", "-o", "name"), "retainedvolume.katbox.io/"+volumes[0].Metadata.Name)
	p.wantIn(p.can("get", "rv", "-n", "ci", volumes[0].Metadata.Name, "-o", "yaml"), "kind: RetainedVolume", "podName: pages-0")
	p.wantIn(p.can("describe", "rv", "-n", "ci", volumes[0].Metadata.Name), "pages-0", "Retained")
	p.wantIn(p.can("explain", "rv"), "RetainedVolume", "FIELDS")
	p.wantIn(p.can("explain", "rv.spec.owner"), "kind")
	p.wantIn(p.can("api-resources", "--api-group=katbox.io", "-o", "wide"), "retainedvolumes", "rv", "get,list")
	c.eventually("all volumes in pages of one", func() error {
		words := strings.Fields(p.can("get", "rv", "-n", "ci", "--chunk-size=1", "-o", "jsonpath={.items[*].metadata.name}"))
		if want := len(p.list("ci", "").Items); len(words) != want {
			return fmt.Errorf("kubectl shows %q, want %d", words, want)
		}
		return nil
	})
	p.cannot([]string{"watch"}, "get", "rv", "-n", "ci", "-w", "--watch-only")
	p.cannot([]string{"field"}, "get", "rv", "-n", "ci", "--field-selector=spec.nope=1")

	of := func(args ...string) string {
		return strings.TrimSpace(p.can(append([]string{"get", "rv", "-n", "ci", "-o", "jsonpath={.items[*].spec.podName}"}, args...)...))
	}
	if got := of("-l", "batch.kubernetes.io/job-name="+job.Labels()); got != job.Spec.PodName {
		c.t.Errorf("of the job there is %q, want %s", got, job.Spec.PodName)
	}
	if got := of("--field-selector=spec.nodeName=" + c.nodeName(2) + ",spec.podName=pages-1"); got != "pages-1" {
		c.t.Errorf("by node and pod there is %q", got)
	}
	if job.Spec.Owner.Kind != "Job" || job.Spec.Owner.Name != "nightly-29000000" || job.Spec.Owner.UID == "" || job.Spec.Owner.Guessed {
		c.t.Errorf("the owner of the job's volume is %+v", job.Spec.Owner)
	}
	// A replica knows within 5 s that a node has its first volume of a namespace; until then it leaves the
	// node out, and the other replica may know it already.
	c.eventually("nothing left in ci", func() error {
		c.as(bob).can("delete", "rv", "-n", "ci", "--all")
		if left := p.list("ci", "").Items; len(left) > 0 {
			return fmt.Errorf("%d volumes", len(left))
		}
		return nil
	})
}

// Labels returns the name of the job in the volume's labels.
func (v rv) Labels() string { return v.Metadata.Labels["batch.kubernetes.io/job-name"] }

// job runs a Job with one pod that fails, deletes it and returns its volume.
func (c *gatewayCluster) job(name string) rv {
	c.t.Helper()
	c.feed(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: ci}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      hostNetwork: true
      terminationGracePeriodSeconds: 2
      containers:
        - {name: c, image: %s, command: [sh, -c, "echo x > /scratch/log; exit 1"], volumeMounts: [{name: scratch, mountPath: /scratch}]}
      volumes: [{name: scratch, csi: {driver: %s}}]
`, name, c.busybox(), driverName), "create", "-f", "-")
	c.kubectl("-n", "ci", "wait", "--for=condition=Failed", "job/"+name, "--timeout", patience.String())
	var found rv
	c.eventually("the volume of job "+name, func() error {
		list := c.admin().list("ci", "labelSelector="+url.QueryEscape("batch.kubernetes.io/job-name="+name))
		if len(list.Items) != 1 {
			return fmt.Errorf("%d volumes", len(list.Items))
		}
		found = list.Items[0]
		return nil
	})
	c.kubectl("-n", "ci", "delete", "job", name)
	return found
}

// testFiles: reading through the API server. The hostile trees of T25 to T30 are tested on the node;
// here are those whose way through the API server matters.
func (c *gatewayCluster) testFiles() {
	script := `cd /scratch; mkdir out; printf 'one\ntwo\nthree\n' > out/log; ln -s /etc/shadow link; mkfifo fifo
		dd if=/dev/null of=sparse bs=1048576 seek=1048576; printf x > 'a b;%&"+'
		printf y > "$(printf 'n\nl')"; printf z > "$(printf 'b\377d')"; exit 1`
	v := c.retained("ci", 2, pod{Name: "files", Scripts: []string{script}})
	p := c.as(bob)
	var list struct {
		Entries []struct {
			Name, Ref, Type, Target string
			Size                    int64
		}
	}
	began := time.Now()
	if err := p.read(&list, v.path()+"/files"); err != nil {
		c.t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		c.t.Errorf("a list of files took %s", took)
	}
	kinds := map[string]string{}
	for _, e := range list.Entries {
		kinds[e.Type] = e.Target
		if e.Type == "file" && e.Size == 1 {
			if got := p.wantCode(http.StatusOK, v.path()+"/log?path="+url.QueryEscape(e.Ref)); len(got) != 1 || !strings.Contains("xyz", got) {
				c.t.Errorf("%q has %q", e.Ref, got)
			}
		}
	}
	if _, fifo := kinds["fifo"]; !fifo || kinds["symlink"] != "/etc/shadow" {
		c.t.Errorf("the entries are %+v", list.Entries)
	}
	for _, path := range []string{"..", "a%2F..%2F..", "link", "fifo", "out", "a%2F%2Fb", strings.Repeat("x", 5000), ""} {
		body := p.wantCode(http.StatusBadRequest, v.path()+"/log?path="+path)
		p.wantIn(body, `"kind":"Status"`)
	}
	for _, path := range []string{"nope", "%2Fetc%2Fshadow"} { // below the volume
		p.wantCode(http.StatusNotFound, v.path()+"/log?path="+path)
	}

	log := v.path() + "/log?path=out%2Flog"
	if got := p.wantCode(http.StatusOK, log+"&tailLines=1"); got != "three\n" {
		c.t.Errorf("the last line is %q", got)
	}
	answer, body := p.ask(http.MethodGet, log, http.Header{"Range": {"bytes=4-6"}})
	if answer.StatusCode != http.StatusPartialContent || body != "two" {
		c.t.Errorf("the range is answered with %s: %q", answer.Status, body)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store",
		"Content-Type": "text/plain; charset=utf-8", "Cross-Origin-Resource-Policy": "same-origin", "Katbox-Node": c.nodeName(2),
	} {
		// The API server adds a Cache-Control of its own.
		if got := answer.Header.Values(name); !slices.Contains(got, want) {
			c.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	answer, _ = p.ask(http.MethodGet, log, http.Header{"Range": {"bytes=100-"}})
	if answer.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		c.t.Errorf("a range behind the end: %s", answer.Status)
	}
	answer, body = p.ask(http.MethodHead, log, nil)
	if answer.StatusCode != http.StatusOK || answer.ContentLength != 14 || body != "" {
		c.t.Errorf("HEAD: %s, %d bytes", answer.Status, answer.ContentLength)
	}
	if got := p.wantCode(http.StatusOK, v.path()+"/log?path=sparse&offset=999999999999&limit=3"); got != "\x00\x00\x00" {
		c.t.Errorf("the end of the sparse file is %q", got)
	}
	archive := p.wantCode(http.StatusOK, v.path()+"/log?path=out&archive=tar")
	c.wantTar(strings.ReplaceAll(archive, "out/", ""), map[string]string{"log": "one\ntwo\nthree\n"})
	for _, path := range []string{"/retainedvolumes?watch=true", "/namespaces/ci/retainedvolumes?watch=1"} {
		c.admin().wantCode(http.StatusMethodNotAllowed, apiGroup+path)
	}
}
