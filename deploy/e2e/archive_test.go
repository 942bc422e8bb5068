//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// archiveCluster is a cluster whose gateway has a bucket.
type archiveCluster struct {
	*gatewayCluster
	store *store
}

func (c *archiveCluster) in(t *testing.T) *archiveCluster {
	return &archiveCluster{c.gatewayCluster.in(t), c.store}
}

// TestArchive: what a job has left outlives its node, in a store that speaks S3.
func TestArchive(t *testing.T) {
	if os.Getenv("KATBOX_E2E_ARCHIVE") == "" {
		t.Skip("the cluster has no store: \"make e2e SUITE=archive\" runs this")
	}
	c := &archiveCluster{gatewayCluster: &gatewayCluster{cluster: newCluster(t), began: time.Now(), archives: true}}
	c.serveDNS(nodesService)
	c.people()
	c.startStore()
	// Node 3 is to go without a replica.
	c.kubectl("cordon", c.nodeName(3))
	c.kubectl("create", "namespace", namespace)
	c.kubectl("-n", namespace, "create", "secret", "generic", "katbox-archive",
		"--from-literal=access-key-id="+storeUser, "--from-literal=secret-access-key="+storeSecret)
	c.kubectl("-n", namespace, "create", "configmap", "store-ca", "--from-file=ca.crt="+c.store.ca)
	text := strings.ReplaceAll(c.builtManifests("overlay-archive", "gateway"), "/var/log/pods", filepath.Join(c.state, "podlogs"))
	c.feed(text, "apply", "-f", "-")
	c.gatewayReady()
	for _, scenario := range []struct {
		name string
		run  func(*archiveCluster)
	}{
		{"held", (*archiveCluster).testHeldNode},
		{"destroyed", (*archiveCluster).testDestroyedNode},
		{"store away", (*archiveCluster).testStoreAway},
		{"deleted", (*archiveCluster).testDeletedArchive},
	} {
		t.Run(scenario.name, func(t *testing.T) { scenario.run(c.in(t)) })
	}
}

// crashing is a Job whose pod writes files, says something and fails, on a node.
const crashing = `{apiVersion: batch/v1, kind: Job, metadata: {name: %[1]s}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never,
  nodeName: %[2]q, automountServiceAccountToken: false, terminationGracePeriodSeconds: 1,
  containers: [{name: work, image: %[3]q, volumeMounts: [{name: scratch, mountPath: /scratch}], command: [sh, -c, %[4]q]}],
  volumes: [{name: scratch, csi: {driver: ` + driverName + `}}]}}}}`

// crash runs such a Job to its failure, and waits until its volumes are retained: that of its files, and what it said.
func (c *archiveCluster) crash(job string, node int, script string) (files, logs rv) {
	c.t.Helper()
	c.feed(fmt.Sprintf(crashing, job, c.nodeName(node), c.busybox(), script), "-n", "ci", "create", "-f", "-")
	c.kubectl("-n", "ci", "wait", "--for=condition=Failed", "job/"+job, "--timeout", patience.String())
	c.eventually("what "+job+" has left", func() error {
		all, err := c.tryVolumesOf(job)
		if err != nil {
			return err
		}
		if len(all) != 2 {
			return fmt.Errorf("%d volumes: %v", len(all), all)
		}
		for _, v := range all {
			if v.Status.Phase != "Retained" {
				return fmt.Errorf("%s is %s", v, v.Status.Phase)
			}
			if v.Spec.VolumeName == "scratch" {
				files = v
			} else {
				logs = v
			}
		}
		return nil
	})
	return files, logs
}

// tryVolumesOf are what a Job has left, as the API lists it. A list is an error here while nodes are missing in it, for a
// minute after they are gone: a copy would end with a warning. While only a store that is away may have what is asked for, a
// list fails.
func (c *archiveCluster) tryVolumesOf(job string) ([]rv, error) {
	var list rvList
	err := c.admin().read(&list, apiGroup+"/namespaces/ci/retainedvolumes?labelSelector=batch.kubernetes.io/job-name%3D"+job)
	for _, missing := range list.Fleet.Missing {
		if strings.HasPrefix(missing.Node, "rk-") {
			err = fmt.Errorf("%s is missing", missing.Node)
		}
	}
	return list.Items, err
}

// volumesOf is tryVolumesOf, which has to succeed.
func (c *archiveCluster) volumesOf(job string) []rv {
	c.t.Helper()
	all, err := c.tryVolumesOf(job)
	if err != nil {
		c.t.Error(err)
	}
	return all
}

// writes is a script that leaves files of several kinds: one that does not compress and has several pieces, and many small ones.
const writes = `mkdir -p /scratch/out/many /scratch/empty; head -c 20000001 /dev/urandom >/scratch/out/data;
i=0; while [ $i -lt 300 ]; do echo "part $i" >/scratch/out/many/$i; i=$((i+1)); done;
ln -s data /scratch/out/link; seq 100000 >/scratch/log; chmod 600 /scratch/log; echo said on stdout; echo and on stderr >&2; exit 3`

// copied are all files of a Job as a person copies them, by their paths.
func (c *archiveCluster) copied(job string) map[string]string {
	c.t.Helper()
	dir := c.t.TempDir()
	if s := c.as(bob).katbox(dir, "cp", "-n", "ci", "--symlinks=keep", "job/"+job, "copy"); s.code != 0 {
		c.t.Fatalf("cp of job/%s ends with %d:\n%s", job, s.code, s.stderr)
	}
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "copy"), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
		case entry.IsDir():
			found[name] = "a directory"
		case entry.Type()&os.ModeSymlink != 0:
			found[name], err = os.Readlink(path)
		default:
			found[name] = c.digestOf(path)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// wantSame compares what was copied before with what is copied now.
func (c *archiveCluster) wantSame(before, now map[string]string) {
	c.t.Helper()
	for name, content := range before {
		if now[name] != content {
			c.t.Errorf("%s was %s, and is %q", name, content, now[name])
		}
	}
	if len(now) != len(before) {
		c.t.Errorf("%d files and directories were copied, and now %d", len(before), len(now))
	}
}

// testDestroyedNode: a job fails, and its node is gone a minute later, with its disk. All is read as before.
func (c *archiveCluster) testDestroyedNode() {
	files, _ := c.crash("doomed", 3, writes)
	failed := time.Now()
	var said string
	c.eventually("each replica knows what the node has", func() error {
		s := c.as(bob).katbox(c.t.TempDir(), "logs", "-n", "ci", "job/doomed")
		if said = s.stdout; s.code != 0 {
			return errors.New(s.stderr)
		}
		return nil
	})
	before := c.copied("doomed")
	if len(before) < 300 || !strings.Contains(said, "said on stdout") {
		c.t.Fatalf("%d files, the logs are %q", len(before), said)
	}
	time.Sleep(time.Until(failed.Add(time.Minute)))
	c.script("node.sh", "kill", "3")
	c.kubectl("delete", "node", c.nodeName(3))
	c.kubectl("delete", "pods", "-A", "--field-selector", "spec.nodeName="+c.nodeName(3), "--force", "--grace-period=0")
	if err := os.RemoveAll(filepath.Join(c.nodeDir(3), "katbox-data")); err != nil {
		c.t.Fatal(err)
	}

	c.eventually("the volumes are listed as archived, under their names", func() error {
		all, err := c.tryVolumesOf("doomed")
		if err != nil {
			return err
		}
		for _, v := range all {
			if v.Status.Phase != "Archived" || v.Spec.NodeName != c.nodeName(3) {
				return fmt.Errorf("%s is %s", v, v.Status.Phase)
			}
			if v.Spec.VolumeName == "scratch" && v.Metadata.Name != files.Metadata.Name {
				return fmt.Errorf("%s was called %s", v, files.Metadata.Name)
			}
		}
		if len(all) != 2 {
			return fmt.Errorf("%d volumes: %v", len(all), all)
		}
		return nil
	})
	report("from the node's end to a list without a warning", "%s", time.Since(failed.Add(time.Minute)).Round(time.Second))
	c.wantSame(before, c.copied("doomed"))
	p, name := c.as(bob), files.Metadata.Name
	if now := p.does("logs", "-n", "ci", "job/doomed"); now != said {
		c.t.Errorf("the logs were %q, and are %q", said, now)
	}
	p.wantIn(p.does("list", "-n", "ci", "job/doomed"), "(archived)", name)
	p.wantIn(p.does("ls", "-n", "ci", "-l", name+":out"), "data", "19 MiB", "link -> data")
	p.wantIn(p.does("tail", "-n", "ci", "--lines", "1", name+":log"), "100000")
	if part := p.does("cat", "-n", "ci", name+":out/many/7"); part != "part 7\n" {
		c.t.Errorf("a small file has %q", part)
	}
	c.search(name)
	// Rights are as before.
	c.as(alice).wantIn(c.as(alice).does("list", "-n", "ci", "job/doomed"), name)
	c.as(alice).doesNot(1, []string{"retainedvolumes/", "get", "ci", alice}, "cat", "-n", "ci", name+":log")
	c.as(erin).doesNot(1, []string{"ci", "retainedvolumes"}, "cat", "-n", "ci", name+":log")
	c.as(erin).doesNot(4, []string{name}, "cat", "-n", "other", name+":log")
	c.as(bob).doesNot(1, nil, "pin", "-n", "ci", name, "--for", "48h", "--reason", "x")
}

// heldNode is what is read of a Node.
type heldNode struct {
	Metadata struct{ Annotations map[string]string }
}

// holds returns the annotations by which a node is held, and whether it has the gateway's mark.
func (c *archiveCluster) holds(n int) (held int, marked bool) {
	c.t.Helper()
	var node heldNode
	if err := json.Unmarshal([]byte(c.kubectl("get", "node", c.nodeName(n), "-o", "json")), &node); err != nil {
		c.t.Fatal(err)
	}
	for _, key := range []string{"cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"} {
		if node.Metadata.Annotations[key] == "true" {
			held++
		}
	}
	_, marked = node.Metadata.Annotations["katbox.io/node-hold"]
	return held, marked
}

// testHeldNode: while the store takes nothing the node of a job that failed is held, and no longer once its volumes have
// their copies. The policy lets the gateway do nothing else to a Node.
func (c *archiveCluster) testHeldNode() {
	c.store.signal(syscall.SIGSTOP)
	goOn := func() { c.store.signal(syscall.SIGCONT) }
	c.t.Cleanup(goOn)
	c.crash("holding", 2, writes)
	c.eventually("node 2 is held", func() error {
		if held, marked := c.holds(2); held != 2 || !marked {
			return fmt.Errorf("%d annotations, marked: %t", held, marked)
		}
		return nil
	})
	if held, marked := c.holds(1); held != 0 || marked {
		c.t.Errorf("node 1, on which nothing waits, has %d annotations, marked: %t", held, marked)
	}
	goOn()
	began := time.Now()
	c.eventually("node 2 is released", func() error {
		if held, _ := c.holds(2); held != 0 {
			return fmt.Errorf("%d annotations", held)
		}
		return nil
	})
	report("from the store's return to the node's release", "%s", time.Since(began).Round(time.Second))
	if n := c.store.objects("/i/"); n != 2 {
		c.t.Errorf("%d indexes are in the bucket, want that of the files and that of the logs", n)
	}

	gateway := "--as=system:serviceaccount:" + namespace + ":katbox-gateway"
	for _, args := range [][]string{
		{"label", "node", c.nodeName(2), "x=y"}, {"annotate", "node", c.nodeName(2), "x=y"},
		{"patch", "node", c.nodeName(2), "--patch", `{"spec":{"unschedulable":true}}`},
	} {
		if out, err := c.tryKubectl("", append(args, gateway)...); err == nil || !strings.Contains(err.Error(), "katbox-hold-nodes") {
			c.t.Errorf("%q as the gateway: %s, %v", args, out, err)
		}
	}
}

// testStoreAway: while the store is away, what nodes have is listed and read, and a list says that the rest is missing.
// Afterwards all is there.
func (c *archiveCluster) testStoreAway() {
	files, _ := c.crash("here", 2, "echo here >/scratch/log; exit 1")
	c.store.stop()
	p := c.as(bob)
	if got := p.does("cat", "-n", "ci", files.Metadata.Name+":log"); got != "here\n" {
		c.t.Errorf("what the node has is %q", got)
	}
	c.eventually("a list says what is missing", func() error {
		s := p.katbox(c.t.TempDir(), "list", "-n", "ci")
		if !strings.Contains(s.stdout, files.Metadata.Name) || !strings.Contains(s.stderr, "archive") {
			return fmt.Errorf("%s\n%s", s.stdout, s.stderr)
		}
		return nil
	})
	c.store.start()
	c.eventually("all is listed", func() error {
		all, err := c.tryVolumesOf("doomed")
		if err == nil && len(all) != 2 {
			err = fmt.Errorf("%d volumes", len(all))
		}
		return err
	})
}

// testDeletedArchive: rm is answered when nothing shows the volume any more, and others cannot.
func (c *archiveCluster) testDeletedArchive() {
	for _, v := range c.volumesOf("doomed") {
		c.as(alice).doesNot(1, []string{"delete", "retainedvolumes", alice}, "rm", "--yes", "-n", "ci", v.Metadata.Name)
		indexes := c.store.objects("/i/")
		c.as(bob).does("rm", "--yes", "-n", "ci", v.Metadata.Name)
		if n := c.store.objects("/i/"); n != indexes-1 {
			c.t.Errorf("%d indexes were in the bucket, and now %d", indexes, n)
		}
		c.as(bob).doesNot(4, []string{v.Metadata.Name}, "stat", "-n", "ci", v.Metadata.Name)
	}
	if all := c.volumesOf("doomed"); len(all) > 0 {
		c.t.Errorf("still listed: %v", all)
	}
}

// binary is a program that "run" has built.
func (c *archiveCluster) binary(name string) string {
	c.t.Helper()
	path, err := exec.LookPath(filepath.Join("..", "..", "bin", name))
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}
