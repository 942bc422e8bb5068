//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// poolsManifests are those of the overlay that is installed.
func (p *poolsCluster) poolsManifests() string {
	p.t.Helper()
	text := p.builtManifests(p.overlay, "controller")
	if p.stub == nil {
		return text
	}
	documents := strings.Split(text, "\n---\n")
	for i, document := range documents {
		if strings.Contains(document, "\nkind: DaemonSet\n") {
			documents[i] = nodesPart.ReplaceAllString(document, "")
		}
	}
	return strings.Join(documents, "\n---\n")
}

// nodesPart are the flags with which the daemon serves volumes of arrays, where nothing stands in for it.
var nodesPart = regexp.MustCompile(`(?m)^ *- --(array-[a-z-]+|chap-namespace|node-addresses|host-root)=.*\n`)

// install applies the overlay, and waits until all that it starts is ready.
func (p *poolsCluster) install() {
	p.t.Helper()
	p.feed(p.poolsManifests(), "apply", "-f", "-")
	p.controllerReady()
	if out, err := p.tryKubectl("", "-n", namespace, "rollout", "status", "daemonset/katbox", "--timeout", patience.String()); err != nil {
		p.t.Fatalf("%v\n%s\n%s", err, out, p.kubectl("-n", namespace, "describe", "pods"))
	}
}

const selectController = "app.kubernetes.io/name=katbox-controller"

// controllerReady waits until there is one pod of the controller, with all containers ready.
func (p *poolsCluster) controllerReady() {
	p.t.Helper()
	out, err := p.tryKubectl("", "-n", namespace, "rollout", "status", "deployment/katbox-controller", "--timeout", patience.String())
	if err != nil {
		p.t.Fatalf("%v\n%s\n%s\n%s", err, out, p.kubectl("-n", namespace, "describe", "pods", "-l", selectController),
			p.kubectl("-n", namespace, "logs", "-l", selectController, "--all-containers", "--prefix", "--tail=20"))
	}
}

// controllerPod is what the tests read of a pod of the controller.
type controllerPod struct {
	Metadata struct{ Name, UID string }
	Status   struct {
		ContainerStatuses []struct {
			Name         string
			Ready        bool
			RestartCount int
		}
	}
}

func (p *poolsCluster) podsOfController() []controllerPod {
	p.t.Helper()
	var pods struct{ Items []controllerPod }
	p.get(&pods, "-n", namespace, "pods", "-l", selectController)
	return pods.Items
}

// podOfController returns the name and the UID of the only pod of the controller.
func (p *poolsCluster) podOfController() (name, uid string) {
	p.t.Helper()
	p.eventually("the controller has one pod", func() error {
		pods := p.podsOfController()
		if len(pods) != 1 {
			return fmt.Errorf("it has %d", len(pods))
		}
		name, uid = pods[0].Metadata.Name, pods[0].Metadata.UID
		return nil
	})
	return name, uid
}

// leader is the pod that holds the lease.
func (p *poolsCluster) leader() string {
	p.t.Helper()
	return p.kubectl("-n", namespace, "get", "lease", "katbox-controller", "-o", "jsonpath={.spec.holderIdentity}")
}

// testInstalled: what the manifests give the controller is enough for a pool that is Ready, whose login is
// where nodes may read it.
func (p *poolsCluster) testInstalled() {
	name, _ := p.podOfController()
	p.wantWell(name)
	if out := p.kubectl("get", "vscsc", "fast", "-o", "jsonpath={.status.state}"); out != "Ready" {
		p.t.Errorf("the class is %q", out)
	}
	if keys := p.login(); !reflect.DeepEqual(keys, []string{"node.session.auth.password", "node.session.auth.username"}) {
		p.t.Errorf("the login has the keys %q", keys)
	}
	if holder := p.leader(); holder != name {
		p.t.Errorf("%q holds the lease, and the pod is %s", holder, name)
	}
}

// wantWell fails unless all containers of a pod are ready, and none was started again.
func (p *poolsCluster) wantWell(name string) {
	p.t.Helper()
	for _, pod := range p.podsOfController() {
		if pod.Metadata.Name != name {
			continue
		}
		if want := map[bool]int{true: 8, false: 5}[p.overlay == "overlay-local"]; len(pod.Status.ContainerStatuses) != want {
			p.t.Errorf("the pod has the containers %+v", pod.Status.ContainerStatuses)
		}
		for _, c := range pod.Status.ContainerStatuses {
			if !c.Ready || c.RestartCount != 0 {
				p.t.Errorf("%s of %s is ready: %t, and was started again %d times", c.Name, name, c.Ready, c.RestartCount)
			}
		}
		return
	}
	p.t.Errorf("there is no pod %s", name)
}

// testReplicas: a second replica waits with its sidecars, longer than those would look for a socket, and
// serves when the first is gone.
func (p *poolsCluster) testReplicas() {
	first := p.leader()
	p.kubectl("-n", namespace, "scale", "deployment/katbox-controller", "--replicas=2")
	p.controllerReady()
	time.Sleep(40 * time.Second)
	second := ""
	for _, pod := range p.podsOfController() {
		if pod.Metadata.Name != first {
			second = pod.Metadata.Name
		}
	}
	p.wantWell(second)
	if holder := p.leader(); holder != first {
		p.t.Errorf("%q leads, and %s did", holder, first)
	}
	p.apply(claim{name: "one"}.String())
	p.bound("one")
	p.kubectl("-n", namespace, "delete", "pod", first, "--wait=true")
	if holder := p.leader(); holder == first {
		p.t.Errorf("%s leads and is gone", first)
	}
	p.kubectl("delete", "pvc", "one", "--wait=true", "--timeout=120s")
	p.apply(claim{name: "two"}.String())
	p.bound("two")
	p.wantWell(second)
	p.kubectl("delete", "pvc", "two", "--wait=true", "--timeout=120s")
	p.kubectl("-n", namespace, "scale", "deployment/katbox-controller", "--replicas=1")
	p.podOfController()
}

// login returns the keys of the Secret that nodes log in to the array with.
func (p *poolsCluster) login() (keys []string) {
	p.t.Helper()
	var secret struct {
		Type string
		Data map[string][]byte
	}
	p.get(&secret, "-n", "katbox-chap", "secret", p.kubectl("get", "vpsa", "a", "-o", "jsonpath={.status.vpsa.chapSecretName}"))
	if secret.Type != "kubernetes.io/iscsi-chap" {
		p.t.Errorf("the login is of type %s", secret.Type)
	}
	for key, value := range secret.Data {
		if len(value) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// testUninstall: without the controller nothing is deleted, pods go on, and the next one goes on where it
// was: after SIGKILL, after its pod was killed, and after the overlay was deleted.
func (p *poolsCluster) testUninstall() {
	one := claim{name: "one", access: "ReadWriteMany"}
	p.apply(one.String(), podWith("one", one))
	volume := p.bound("one")
	p.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/one")
	for _, end := range []struct {
		how         string
		end, goesOn func()
		gone        bool
	}{
		{how: "its process is killed", end: p.killController, goesOn: p.controllerReady},
		{how: "its pod is killed", end: p.killPod, goesOn: p.controllerReady},
		{how: "the overlay is deleted", end: p.uninstall, goesOn: p.reinstall, gone: true},
	} {
		before := p.arrayContent()
		p.wantAllowed()
		end.end()
		p.apply(claim{name: "two"}.String())
		time.Sleep(3 * time.Second) // it has the time to be wrong
		if after := p.arrayContent(); end.gone && !reflect.DeepEqual(before, after) {
			p.t.Errorf("%s: the array has %v, want %v", end.how, after, before)
		}
		p.wantKept(end.how, volume)
		end.goesOn()
		p.bound("two")
		p.wantPool("Ready")
		p.wantKept(end.how, volume)
		p.kubectl("delete", "pvc", "two", "--wait=true", "--timeout=120s")
		p.eventually("only the first volume is left", func() error {
			if out := p.kubectl("get", "pv,poolvolumes", "-o", "name"); strings.Count(out, "\n") != 2 {
				return errors.New(out)
			}
			return nil
		})
	}
	p.kubectl("delete", "pod", "one", "--wait=true")
	p.kubectl("delete", "pvc", "one", "--wait=true", "--timeout=120s")
}

// uninstall deletes the overlay, and checks what stays.
func (p *poolsCluster) uninstall() {
	p.t.Helper()
	p.removed(func() { p.feed(p.poolsManifests(), "delete", "--wait", "--timeout", patience.String(), "-f", "-") })
	if out, err := p.tryKubectl("", "get", "namespace", namespace, "-o", "name"); err == nil {
		p.t.Errorf("%s is still there", out)
	}
	p.wantRecords()
}

// removed notes when something was removed with the rights of the controller.
func (p *poolsCluster) removed(remove func()) {
	p.t.Helper()
	began := time.Now()
	remove()
	p.removals = append(p.removals, removal{began, time.Now()})
}

// wantRecords fails unless the resources of one volume, which is attached, are all there, without a controller.
func (p *poolsCluster) wantRecords() {
	p.t.Helper()
	if len(p.login()) != 2 {
		p.t.Error("the login is gone")
	}
	for _, kind := range []string{"poolclasses", "pools", "poolvolumes", "poolattachments", "poolnodes", "pv", "volumeattachments"} {
		var objects struct {
			Items []struct {
				Metadata struct{ Name, DeletionTimestamp string }
			}
		}
		p.get(&objects, kind)
		if len(objects.Items) != 1 || objects.Items[0].Metadata.DeletionTimestamp != "" {
			p.t.Errorf("without the controller there are the %s %+v", kind, objects.Items)
		}
	}
}

// wantKept fails unless a volume is still attached on the array, and its pod runs.
func (p *poolsCluster) wantKept(when, volume string) {
	p.t.Helper()
	if p.attachedTo(volume) == "" {
		p.t.Errorf("%s: the volume is detached", when)
	}
	if out := p.kubectl("get", "pod", "one", "-o", "jsonpath={.status.phase}"); out != "Running" {
		p.t.Errorf("%s: the pod is %s", when, out)
	}
}

func (p *poolsCluster) arrayContent() map[string][]map[string]any {
	p.t.Helper()
	content := map[string][]map[string]any{}
	for _, kind := range []string{"volumes", "snapshots", "servers"} {
		content[kind] = p.onArray(kind)
	}
	return content
}

// killController ends the controller's process, and nothing else in its pod.
func (p *poolsCluster) killController() {
	p.t.Helper()
	_, uid := p.podOfController()
	before := p.restarts()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		groups, _ := os.ReadFile(filepath.Join(process, "cgroup"))
		if !strings.HasPrefix(string(command), "/katbox-controller\x00") || !strings.Contains(string(groups), uid) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.eventually("the container is started again", func() error {
			if now := p.restarts(); now == before {
				return fmt.Errorf("it was restarted %s times, as before", now)
			}
			return nil
		})
		return
	}
	p.t.Fatal("there is no process of the controller")
}

// restarts is how often the container of the controller was started again.
func (p *poolsCluster) restarts() string {
	p.t.Helper()
	return p.kubectl("-n", namespace, "get", "pods", "-l", selectController,
		"-o", `jsonpath={.items[*].status.containerStatuses[?(@.name=="controller")].restartCount}`)
}

// killPod ends the pod, and does not wait for it.
func (p *poolsCluster) killPod() {
	p.t.Helper()
	name, _ := p.podOfController()
	p.kubectl("-n", namespace, "delete", "pod", name, "--force", "--grace-period=0")
}

// reinstall installs the overlay again, and the access key, which went with the namespace.
func (p *poolsCluster) reinstall() {
	p.t.Helper()
	p.install()
	p.feed(accessKey, "apply", "--server-side", "-f", "-")
}

// wantAllowed fails if the API server has refused anything to what the overlay runs, or a log says so.
func (p *poolsCluster) wantAllowed() {
	p.t.Helper()
	var log []byte
	for _, name := range p.auditLogs() {
		more, err := os.ReadFile(name)
		if err != nil {
			p.t.Fatal(err)
		}
		log = append(log, more...)
	}
	requests := 0
	for line := range strings.Lines(string(log)) {
		var event struct {
			Verb, RequestURI         string
			RequestReceivedTimestamp time.Time
			User                     struct{ Username string }
			ResponseStatus           struct{ Code int }
		}
		if json.Unmarshal([]byte(line), &event) != nil { // the last line may be half written
			continue
		}
		if !strings.HasPrefix(event.User.Username, "system:serviceaccount:"+namespace+":") {
			continue
		}
		at := event.RequestReceivedTimestamp
		if slices.ContainsFunc(p.removals, func(r removal) bool { return at.After(r.began) && at.Before(r.ended) }) {
			continue
		}
		if requests++; event.ResponseStatus.Code == 401 || event.ResponseStatus.Code == 403 {
			p.t.Errorf("%s may not %s %s", event.User.Username, event.Verb, event.RequestURI)
		}
	}
	if requests == 0 {
		p.t.Error("the audit log has no request of the controller")
	}
	logs := p.kubectl("-n", namespace, "logs", "-l", selectController, "--all-containers", "--prefix", "--tail=-1")
	for line := range strings.Lines(logs) {
		if strings.Contains(strings.ToLower(line), "forbidden") {
			p.t.Errorf("a log says: %s", line)
		}
	}
}
