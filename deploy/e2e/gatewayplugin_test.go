//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// said is what a run of "kubectl katbox" printed, and its exit code.
type said struct {
	stdout, stderr string
	code           int
}

// pluginPath is a PATH with kubectl and the plugin before all else.
func (c *gatewayCluster) pluginPath() string {
	c.t.Helper()
	dir := filepath.Join(c.state, "plugin")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		binary, err := filepath.Abs("../../bin/kubectl-katbox")
		if err == nil {
			_, err = os.Stat(binary)
		}
		if err == nil {
			err = errors.Join(os.Mkdir(dir, 0o755), os.Symlink(binary, filepath.Join(dir, "kubectl-katbox")),
				os.WriteFile(filepath.Join(dir, "kubectl"), fmt.Appendf(nil, "#!/bin/sh\nexec %s kubectl \"$@\"\n", c.kube), 0o755))
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return dir + ":" + os.Getenv("PATH")
}

// command is a command as a person types it, in a directory.
func (p person) command(dir, name string, args ...string) *exec.Cmd {
	p.t.Helper()
	path := p.pluginPath()
	cmd := exec.Command(filepath.Join(p.state, "plugin", "kubectl"), args...)
	if name != "kubectl" {
		cmd = exec.Command(name, args...)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+p.kubeconfig, "HOME="+p.state, "TERM=dumb")
	return cmd
}

// katbox runs "kubectl katbox" in a directory.
func (p person) katbox(dir string, args ...string) said {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := p.command(dir, "kubectl", append([]string{"katbox"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return said{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// does runs "kubectl katbox", which has to succeed, and returns what it printed.
func (p person) does(args ...string) string {
	p.t.Helper()
	s := p.katbox(p.t.TempDir(), args...)
	if s.code != 0 {
		p.t.Errorf("%s: kubectl katbox %q ends with %d:\n%s%s", p.name, args, s.code, s.stdout, s.stderr)
	}
	return s.stdout
}

// doesNot runs "kubectl katbox", which has to fail with a code and a message that has each part.
func (p person) doesNot(code int, parts []string, args ...string) {
	p.t.Helper()
	s := p.katbox(p.t.TempDir(), args...)
	if s.code != code || s.stdout != "" {
		p.t.Errorf("%s: kubectl katbox %q ends with %d, want %d:\n%s%s", p.name, args, s.code, code, s.stdout, s.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(s.stderr, part) {
			p.t.Errorf("%s: kubectl katbox %q: %q is not in %s", p.name, args, part, s.stderr)
		}
	}
}

// testPlugin: a job failed, its pods are deleted, and people with different rights look for its files
// with the plugin.
func (c *gatewayCluster) testPlugin() {
	volumes := c.failedJob()
	c.story()
	c.pluginRights(volumes)
	c.pluginFiles(volumes)
	c.pluginSearch(volumes)
	c.as(bob).pluginCut()
	through, kill := c.as(bob).proxy()
	through.pluginCut()
	kill()

	p := c.as(bob)
	p.does("rm", "--yes", "-n", "ci", volumes[0].Metadata.Name)
	p.doesNot(4, []string{volumes[0].Metadata.Name}, "cat", "-n", "ci", volumes[0].Metadata.Name+":log")
	p.does("rm", "--yes", "-n", "ci", "job/nightly")
	p.doesNot(4, []string{"nightly"}, "ls", "-n", "ci", "job/nightly:")
}

// failedJob runs the example job, which fails twice, deletes it with its pods, and returns the volumes,
// the newest first. They go at the end of the test.
func (c *gatewayCluster) failedJob() []rv {
	c.t.Helper()
	manifest, err := os.ReadFile("../examples/job.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	c.feed(strings.ReplaceAll(string(manifest), "image: busybox:1.37\n", "image: "+c.busybox()+"\n"), "-n", "ci", "apply", "-f", "-")
	c.t.Cleanup(func() {
		if out, err := c.tryKubectl("", "-n", "ci", "delete", "rv", "-l", "batch.kubernetes.io/job-name=nightly"); err != nil {
			c.t.Errorf("%v\n%s", err, out)
		}
	})
	c.kubectl("-n", "ci", "wait", "--for=condition=Failed", "job/nightly", "--timeout", patience.String())
	c.wantFilesKept("ci", "batch.kubernetes.io/job-name=nightly")
	c.kubectl("-n", "ci", "delete", "job", "nightly", "--ignore-not-found", "--wait", "--timeout", patience.String())
	var found []rv
	c.eventually("the volumes of job nightly", func() error {
		found = c.admin().list("ci", "labelSelector=batch.kubernetes.io/job-name%3Dnightly").Items
		if len(found) != 2 {
			return fmt.Errorf("%d volumes", len(found))
		}
		for _, v := range found {
			if v.Status.Bytes == nil {
				return fmt.Errorf("%s has no size yet", v)
			}
		}
		var pods struct{ Items []status }
		c.get(&pods, "pods", "-n", "ci", "--selector", "batch.kubernetes.io/job-name=nightly")
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are still there", len(pods.Items))
		}
		return nil
	})
	return found
}

// wantFilesKept waits until each pod with the label has one event that says how to see its files.
func (c *gatewayCluster) wantFilesKept(namespace, selector string) {
	c.t.Helper()
	var pods struct{ Items []status }
	c.get(&pods, "pods", "-n", namespace, "--selector", selector)
	if len(pods.Items) == 0 {
		c.t.Errorf("no pod in %s has %s", namespace, selector)
	}
	for _, pod := range pods.Items {
		c.eventually("the event on pod "+pod.Metadata.Name, func() error {
			var events struct{ Items []struct{ Message string } }
			c.get(&events, "events", "-n", namespace, "--field-selector", "reason=FilesKept,involvedObject.uid="+pod.Metadata.UID)
			want := "kubectl katbox ls -n " + namespace + " pod/" + pod.Metadata.Name
			if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, want) {
				return fmt.Errorf("there are %v, want one with %q", events.Items, want)
			}
			return nil
		})
	}
}

// pluginRights: what the plugin tells people who may less.
func (c *gatewayCluster) pluginRights(volumes []rv) {
	file := volumes[0].Metadata.Name + ":log"
	for _, who := range []string{alice, carol} { // carol has a client certificate
		p := c.as(who)
		list := p.does("list", "-n", "ci", "--job", "nightly")
		p.wantIn(list, volumes[0].Metadata.Name, volumes[1].Metadata.Name, "job/nightly")
		for _, args := range [][]string{
			{"cat", "-n", "ci", file}, {"tail", "-n", "ci", "--last", "job/nightly:log"}, {"ls", "-n", "ci", volumes[0].Metadata.Name + ":"},
			{"cp", "-n", "ci", "job/nightly", "."},
		} {
			p.doesNot(1, []string{"retainedvolumes/", "get", "ci", who}, args...)
		}
		p.doesNot(1, []string{"delete", "retainedvolumes", who}, "rm", "--yes", "-n", "ci", volumes[0].Metadata.Name)
		check := p.katbox(c.t.TempDir(), "check", "-n", "ci")
		p.wantIn(check.stdout+check.stderr, "list", "retainedvolumes/log", "edit")
	}
	c.as(bob).does("check", "-n", "ci")

	// One who may edit in another namespace sees nothing of this one, by no way.
	p := c.as(erin)
	p.doesNot(1, []string{"ci", "list", "retainedvolumes"}, "list", "-n", "ci")
	p.doesNot(1, []string{"ci", "retainedvolumes"}, "cat", "-n", "ci", file)
	p.doesNot(1, []string{"retainedvolumes"}, "list", "-A")
	p.doesNot(4, []string{"nightly", "other"}, "cat", "-n", "other", "job/nightly:log")
	p.doesNot(4, []string{volumes[0].Metadata.Name}, "cat", "-n", "other", file)
	if list := p.does("list", "-n", "other", "-o", "name"); strings.Contains(list, "nightly") {
		c.t.Errorf("erin sees %s", list)
	}
	mine := c.retained("other", 3, leaves("erins", "of erin"))
	if got := p.does("cat", "-n", "other", mine.Metadata.Name+":out/log"); got != "of erin" {
		c.t.Errorf("erin reads %q with her certificate", got)
	}
	check := p.katbox(c.t.TempDir(), "check", "-n", "ci")
	p.wantIn(check.stdout+check.stderr, "ci", "list")
}

// pluginFiles: one who may edit reads and copies by the job's name, and by the volume's.
func (c *gatewayCluster) pluginFiles(volumes []rv) {
	p := c.as(bob)
	p.wantIn(p.does("ls", "-n", "ci", "-l", "--last", "job/nightly:"), "out/", "log")
	p.doesNot(1, []string{"--last", volumes[0].Metadata.Name, volumes[1].Metadata.Name}, "cat", "-n", "ci", "job/nightly:log")
	for _, v := range volumes {
		p.wantIn(p.does("cat", "-n", "ci", v.Metadata.Name+":log"), "computing since", "the input ends in the middle")
		p.wantIn(p.does("tail", "-n", "ci", "--lines", "1", "pod/"+v.Spec.PodName+":log"), "the input ends in the middle")
		p.wantIn(p.does("stat", "-n", "ci", v.Metadata.Name+":out/part-3"), "1000000")
	}

	dir := c.t.TempDir()
	if s := p.katbox(dir, "cp", "-n", "ci", "job/nightly", "nightly"); s.code != 0 {
		c.t.Errorf("cp ends with %d: %s", s.code, s.stderr)
	}
	for _, v := range volumes {
		for _, name := range []string{"log", "out/part-1", "out/part-3"} {
			c.wantCopy(v, name, filepath.Join(dir, "nightly", v.Spec.PodName, v.Spec.VolumeName, name))
		}
	}
	v := volumes[1]
	if s := p.katbox(dir, "cp", "-n", "ci", v.Metadata.Name+":out/part-2", "."); s.code != 0 {
		c.t.Errorf("cp ends with %d: %s", s.code, s.stderr)
	}
	c.wantCopy(v, "out/part-2", filepath.Join(dir, "part-2"))
	s := p.katbox(dir, "cp", "-n", "ci", "--last", "job/nightly", "-")
	if s.code != 0 {
		c.t.Errorf("cp to standard output ends with %d: %s", s.code, s.stderr)
	}
	want := map[string]string{}
	for _, name := range []string{"log", "out/part-1", "out/part-2", "out/part-3"} {
		want[name] = string(c.readFile(c.onNode(volumes[0], name)))
	}
	c.wantTar(s.stdout, want)
}

// onNode is a file of a volume, as it lies on its node.
func (c *gatewayCluster) onNode(v rv, name string) string {
	c.t.Helper()
	for n := 1; n <= 3; n++ {
		if c.nodeName(n) == v.Spec.NodeName {
			return filepath.Join(c.nodeDir(n), "katbox-data", v.Spec.PodUID, v.Spec.VolumeID, name)
		}
	}
	c.t.Fatalf("%s is on node %s", v, v.Spec.NodeName)
	return ""
}

func (c *gatewayCluster) readFile(path string) []byte {
	c.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

// wantCopy fails unless a file is what a volume has.
func (c *gatewayCluster) wantCopy(v rv, name, path string) {
	c.t.Helper()
	if !bytes.Equal(c.readFile(path), c.readFile(c.onNode(v, name))) {
		c.t.Errorf("%s is not what %s has", path, v)
	}
}

// pluginCut: a rollout of the gateway cuts a copy, which goes on by itself where it was cut.
func (p person) pluginCut() {
	v := p.retained("ci", 1, filled("cut", longBytes))
	for _, target := range []string{v.Metadata.Name + ":data", v.Metadata.Name} {
		dir := p.t.TempDir()
		goOn := p.begin(dir, 1, longBytes, "cp", "-n", "ci", target, "copy")
		p.replaceGateway()
		if err := goOn(); err != nil {
			p.t.Errorf("cp %s: %v", target, err)
			continue
		}
		p.wantResumed(p.name, v, target == v.Metadata.Name)
		copied := filepath.Join(dir, "copy")
		if info, err := os.Stat(copied); err == nil && info.IsDir() {
			copied = filepath.Join(copied, "data")
		}
		p.wantCopy(v, "data", copied)
	}
	p.does("rm", "--yes", "-n", "ci", v.Metadata.Name)
}

// begin runs "kubectl katbox" in a directory. It stands still once that holds at least some bytes, and not all, until goOn is
// called, which waits for its end.
func (p person) begin(dir string, least, all int64, args ...string) (goOn func() error) {
	p.t.Helper()
	cmd := p.command(dir, "kubectl", append([]string{"katbox"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.eventually("a part of the copy", func() error {
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		if part := p.partsOf(dir); part >= least {
			if part >= all {
				p.t.Fatalf("the copy was done before it was stopped, with %d bytes", part)
			}
			return nil
		}
		defer time.Sleep(time.Millisecond)
		return errors.Join(errors.New("too little yet"), cmd.Process.Signal(syscall.SIGCONT))
	})
	return func() error {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGCONT), cmd.Wait()); err != nil {
			return fmt.Errorf("%w\n%s", err, &stderr)
		}
		return nil
	}
}

// wantResumed fails unless the API server's audit log says that a person's download was cut, and that one for
// the rest was answered.
func (c *gatewayCluster) wantResumed(user string, v rv, archive bool) {
	c.t.Helper()
	rest := 0
	for _, event := range c.audited() {
		if event.User.Username == user && event.ObjectRef.Name == v.Metadata.Name && event.ResponseStatus.Code == http.StatusPartialContent &&
			event.Stage == "ResponseComplete" && strings.Contains(event.RequestURI, "archive=tar") == archive {
			rest++
		}
	}
	if rest != 1 {
		c.t.Errorf("%s asked %d times for the rest of a download of %s (archive: %t), want once", user, rest, v, archive)
	}
}

// partsOf is how many bytes lie below a directory.
func (c *gatewayCluster) partsOf(dir string) (bytes int64) {
	c.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a name may go meanwhile
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes
}

// replaceGateway rolls the gateway out anew, and waits until its old replicas are gone.
func (c *gatewayCluster) replaceGateway() {
	c.t.Helper()
	old := strings.Fields(c.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox-gateway", "-o", "name"))
	c.kubectl("-n", namespace, "rollout", "restart", "deployment/katbox-gateway")
	c.gatewayReady()
	c.kubectl(append([]string{"-n", namespace, "wait", "--for=delete", "--timeout", patience.String()}, old...)...)
}
