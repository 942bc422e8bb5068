package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// TestVolumesOnArrays: the volume of a deleted claim that is kept on a remote array is listed with all others, and who
// wants to read it learns how to get it back.
func TestVolumesOnArrays(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	other, _ := n.PutClaim(3, "ci", "cache")
	name := c.PutOnArray("pvc-0c8e", "ci", "data", time.Now().Add(-5*time.Hour))
	eve, vic, bob := as(t, c, "eve"), as(t, c, "vic"), as(t, c, "bob")

	_, stdout, _ := vic.run("list", "-o", "name")
	if !strings.Contains(stdout, name) || !strings.Contains(stdout, other) {
		t.Errorf("list -o name: %s", stdout)
	}
	_, stdout, stderr := vic.run("list", "pvc/data", "-o", "wide")
	for _, part := range []string{name, "pvc/data", "10 GiB", "5h ago", "in 18h59m", "pool/berlin (fast)"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("list -o wide has no %q:\n%s%s", part, stdout, stderr)
		}
	}
	_, stdout, _ = vic.run("stat", name)
	for _, part := range []string{"data", "berlin", "fast", "10 GiB", "pvc-0c8e"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("stat has no %q:\n%s", part, stdout)
		}
	}

	for _, args := range []string{"ls pvc/data", "cat pvc/data:table.db", "cp pvc/data:x " + t.TempDir()} {
		code, _, stderr := eve.run(strings.Fields(args)...)
		kept := strings.Contains(stderr, "kept on the array of pool berlin until ")
		if code != 1 || !kept || !strings.Contains(stderr, "kubectl create -n ci -f -") {
			t.Errorf("%s: %d %s", args, code, stderr)
			continue
		}
		_, example, _ := strings.Cut(stderr, "echo '")
		example, _, _ = strings.Cut(example, "'")
		var claim struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
		if err := json.Unmarshal([]byte(example), &claim); err != nil || claim.Metadata.Name != "data" ||
			claim.Metadata.Annotations["pools.katbox.io/restore"] != "uid-of-data" {
			t.Errorf("%s: the example is %s: %v", args, example, err)
		}
	}
	eve.wantFailure(1, []string{"says how a claim gets it back"}, "debug", name)
	eve.wantFailure(1, []string{"kubectl delete poolvolume pvc-0c8e"}, "rm", "--yes", name)
	as(t, c, "kim").wantFailure(1, []string{"spec.lifespan"}, "pin", "--for", "1d", "--reason", "x", name)

	bob.wantFailure(4, []string{"no retained volume"}, "-n", "etl", "ls", "pvc/data")
	vic.wantFailure(1, []string{"may list retained volumes in namespace ci, and not read their files"}, "ls", name)
	c.Namespace("ci", volume.Tenancy{UID: "uid-later"})
	eve.wantFailure(4, []string{"no such retained volume"}, "ls", name)
	if _, stdout, _ := vic.run("list", "-o", "name"); strings.Contains(stdout, name) {
		t.Errorf("a later namespace of the name has %s", stdout)
	}
}
