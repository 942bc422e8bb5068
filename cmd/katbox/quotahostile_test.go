package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestQuotaOfAHostilePod: a pod that changes projects harms nothing but limits. Its volume is
// retained and erased, its neighbour keeps its data, and no new volume gets a project that files of
// others have.
func TestQuotaOfAHostilePod(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.start()
		hostile := n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0)
		victim := n.mustPublish(podNamed(2), volumeID(2), "1Mi", 0)
		its, own := n.project(victim), n.project(hostile)
		if err := os.WriteFile(victim+"/data", []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		asPod := func(as func(string, ...string) (string, error), command ...string) error {
			_, err := as(hostile, command...)
			return err
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}

		// As an ordinary user. deploy/docs/limits.md says so, and this test shows that it is still true.
		must(asPod(roottest.AsPod, "mkdir", "free", "guest", "plain"))
		must(asPod(roottest.AsPod, "chattr", "-p", "0", "free"))
		if size, err := n.write(hostile, "free/big", 3); err != nil {
			t.Errorf("outside of its project: %d bytes, %v", size, err)
		}
		must(asPod(roottest.AsPod, "chattr", "-p", fmt.Sprint(its), "guest"))
		must(asPod(roottest.AsPod, "touch", "guest/left"))
		must(asPod(roottest.AsPod, "chattr", "-P", "plain"))
		must(asPod(roottest.AsPod, "mkfifo", "guest/fifo"))
		if used := n.quota(its).Used.Inodes; used != 5 {
			t.Errorf("the victim's project has %d inodes, want its 2 and 3 of the other", used)
		}
		if err := asPod(roottest.AsPod, "chattr", "-p", "0", "."); err == nil {
			t.Error("an ordinary user takes the top directory out of its project")
		}

		// In a user namespace the kernel refuses it all.
		must(asPod(roottest.AsPod, "mkdir", "own"))
		for _, project := range []string{"0", fmt.Sprint(its)} {
			for _, path := range []string{"own", "."} {
				if err := asPod(roottest.AsRootOfPod, "chattr", "-p", project, path); err == nil {
					t.Errorf("root of a user namespace sets project %s on %s", project, path)
				}
			}
		}

		// As root of a container that has the node's users.
		_, err := roottest.Run("chattr", "-P", "-p", strconv.Itoa(7), hostile)
		must(err)

		// The victim goes first. Its ID is not given away while the other's files have it.
		n.unpublish(podNamed(2), volumeID(2))
		if got, err := os.ReadFile(n.data(podNamed(2), volumeID(2)) + "/data"); err != nil || string(got) != "precious" {
			t.Errorf("the victim's data: %q, %v", got, err)
		}
		n.purgeRetained(podNamed(2), volumeID(2))
		n.crash()
		next := n.mustPublish(podNamed(3), volumeID(3), "1Mi", 0)
		if project := n.project(next); project == its || n.quota(project).Used.Inodes != 1 {
			t.Errorf("the next volume has project %d, the victim had %d", project, its)
		}
		n.mustPublish(podNamed(1), volumeID(1), "1Mi", 0) // it was published all the time
		if !exists(hostile + "/guest/left") {
			t.Error("a file of the hostile pod is gone with its victim's volume")
		}

		n.unpublish(podNamed(1), volumeID(1))
		if !exists(n.data(podNamed(1), volumeID(1)) + "/free/big") {
			t.Error("the hostile pod's volume is not retained")
		}
		n.purgeRetained(podNamed(1), volumeID(1))
		n.wantFree(its)
		n.wantFree(own)
	})
}

// TestQuotaSetsForeignProjectsAside: an ID whose use does not end within a minute comes back once it
// has ended.
func TestQuotaSetsForeignProjectsAside(t *testing.T) {
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.start()
		hostile := n.mustPublish(podNamed(1), volumeID(1), "", 0)
		its := n.project(n.mustPublish(podNamed(2), volumeID(2), "", 0))
		if _, err := roottest.AsPod(hostile, "mkdir", "guest"); err != nil {
			t.Fatal(err)
		}
		if _, err := roottest.AsPod(hostile, "chattr", "-p", fmt.Sprint(its), "guest"); err != nil {
			t.Fatal(err)
		}
		n.purge(podNamed(2), volumeID(2))
		n.eventually("the project is set aside", func() bool { return n.logged("a project ID is set aside") })
		if err := os.Remove(hostile + "/guest"); err != nil {
			t.Fatal(err)
		}
		n.wantFree(its)
		n.wantGivenAgain(its, 3)
	})
}
