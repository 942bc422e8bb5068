//go:build e2e

package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestClaims: what deleted claims have left is listed and read by people as what pods have left, with their own rights and
// in their own namespace, and a new claim gets it back. The nodes' disks keep volumes as images.
func TestClaims(t *testing.T) {
	if os.Getenv("KATBOX_E2E_LOCAL") == "" || os.Getenv("KATBOX_E2E_GATEWAY") == "" {
		t.Skip(`the cluster is another: "make e2e SUITE=claims" runs this`)
	}
	l := &localCluster{newPoolsCluster(t, "overlay-claims")}
	c := &gatewayCluster{cluster: l.cluster, began: time.Now()}
	l.serveDNS(nodesService, localNodes)
	c.people()
	for n := 1; n <= nodesWithDisks; n++ {
		l.makeMountPoint(n)
		l.makeDisk(n, "xfs", localDiskSize)
		l.mountDisk(n)
	}
	l.installAs(func(text string) string {
		name, tag, _ := strings.Cut(l.image, ":")
		return strings.ReplaceAll(text, "ghcr.io/katbox/katbox-gateway:v0.1.0", name+"-gateway:"+tag)
	})
	l.feed(localClasses, "apply", "--server-side", "-f", "-")
	l.wantPools()
	c.kubectl("-n", namespace, "rollout", "status", "deployment/katbox-gateway", "--timeout", patience.String())
	c.kubectl("wait", "--for=condition=Available", "apiservice/v1alpha1.katbox.io", "--timeout", patience.String())
	c.eventually("nothing is missing in a list, what is on arrays neither", func() error {
		for range 8 { // the API server takes one replica or the other
			var list rvList
			if err := c.admin().read(&list, apiGroup+"/retainedvolumes?limit=1"); err != nil {
				return err
			}
			if list.Fleet.Nodes != nodesWithDisks+1 || len(list.Fleet.Missing) > 0 {
				return fmt.Errorf("the fleet is %+v", list.Fleet)
			}
		}
		return nil
	})

	const node, other = 2, 1
	l = l.in(t) // of its own: names are resolved beside this
	l.pods = "ci"
	l.apply(localClaim("kept", "300Mi", "pools.katbox.io/lifespan: 1h"), localPod{name: "writer", claim: "kept", node: node}.String())
	l.running("writer")
	sum := l.exec("writer", "echo found it >/v/log && mkdir /v/d && "+write("/v/d/data", 20)+" && sync && sha256sum </v/d/data")
	sum, _, _ = strings.Cut(sum, " ")
	l.kubectl("delete", "pod", "writer", "--wait=true")
	l.kubectl("delete", "pvc", "kept", "--wait=true")
	listed := func() (claims []string, err error) {
		var list rvList
		err = c.as(alice).read(&list, apiGroup+"/namespaces/ci/retainedvolumes")
		for _, v := range list.Items {
			if v.Spec.Owner.Kind == "PersistentVolumeClaim" {
				claims = append(claims, v.Spec.Owner.Name)
			}
		}
		return claims, err
	}
	c.eventually("the volume of the deleted claim is listed", func() error {
		for range 8 { // each replica learns by itself, within some seconds, what the nodes have
			claims, err := listed()
			if err != nil {
				return err
			}
			if !slices.Equal(claims, []string{"kept"}) {
				return fmt.Errorf("the list has those of the claims %q", claims)
			}
		}
		return nil
	})

	viewer, editor, stranger := c.as(alice), c.as(bob), c.as(erin)
	if table := viewer.can("get", "retainedvolumes", "-n", "ci"); !strings.Contains(table, "kept") {
		t.Errorf("kubectl get shows\n%s", table)
	}
	editor.wantIn(viewer.does("list", "-n", "ci", "pvc/kept"), "pvc/kept")
	editor.wantIn(editor.does("ls", "-n", "ci", "-R", "pvc/kept:"), "log", "d/data")
	for range 2 { // shown anew, and while it is shown
		if got := editor.does("cat", "-n", "ci", "pvc/kept:log"); got != "found it\n" {
			t.Errorf("the log is %q", got)
		}
	}
	data := editor.does("cat", "-n", "ci", "pvc/kept:d/data")
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(data))); got != sum {
		t.Errorf("%d bytes with the checksum %s were read, want %s", len(data), got, sum)
	}
	viewer.doesNot(1, []string{"retainedvolumes/", "get", "ci", alice}, "cat", "-n", "ci", "pvc/kept:log")
	stranger.doesNot(1, []string{"ci", "retainedvolumes"}, "cat", "-n", "ci", "pvc/kept:log")
	stranger.doesNot(4, []string{"kept", "other"}, "cat", "-n", "other", "pvc/kept:log")

	// The new claim does not wait for those who have read.
	l.apply(localClaim("again", "300Mi", "pools.katbox.io/restore: kept, pools.katbox.io/lifespan: 0s"),
		localPod{name: "reader", claim: "again", prefers: other}.String())
	l.running("reader")
	if got := l.exec("reader", "cat /v/log && sha256sum </v/d/data"); !strings.HasPrefix(got, "found it\n"+sum) {
		t.Errorf("the new claim has %q, want %s", got, sum)
	}
	c.eventually("the volume that has a claim is listed no more", func() error {
		claims, err := listed()
		if err == nil && claims != nil {
			err = fmt.Errorf("the list has those of the claims %q", claims)
		}
		return err
	})
	l.kubectl("delete", "pod", "reader", "--wait=true")
	l.kubectl("delete", "pvc", "again", "--wait=true")
	l.wantNothingLeft()
	c.eventually("no loop device is left", func() error {
		out := l.onNode(node, "cat /sys/block/loop*/loop/backing_file 2>/dev/null || true")
		if strings.Contains(out, "/volumes/") {
			return errors.New(out)
		}
		return nil
	})
	l.wantAllowed()
}
