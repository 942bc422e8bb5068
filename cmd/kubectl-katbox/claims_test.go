package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// TestVolumesOfClaims: the volume of a deleted claim is listed and read as inline ones are, by those who may read
// these in its namespace, and belongs to nobody in a later namespace of the name.
func TestVolumesOfClaims(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	name, path := n.PutClaim(3, "ci", "data-web-0")
	n.Put(4, "ci", "", "data-web-0") // a pod of the same name
	n.PutClaim(5, "etl", "data-web-0")
	must(t, os.WriteFile(filepath.Join(path, "table.db"), []byte("rows\n"), 0o600))
	eve, vic, bob := as(t, c, "eve"), as(t, c, "vic"), as(t, c, "bob")

	for _, args := range []string{
		"list pvc/data-web-0 -o name", "list -l katbox.io/owner-kind=PersistentVolumeClaim -o name", "list " + name + " -o name",
	} {
		code, stdout, stderr := vic.run(strings.Fields(args)...)
		if code != 0 || strings.TrimSpace(stdout) != "retainedvolume.katbox.io/"+name && strings.TrimSpace(stdout) != name {
			t.Errorf("%s: %d %q %q", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := vic.run("list", name); !strings.Contains(stdout, "pvc/data-web-0") || !strings.Contains(stdout, "1.0 GiB") {
		t.Errorf("list:\n%s", stdout)
	}
	if _, stdout, _ := vic.run("stat", name); !strings.Contains(stdout, "Claim:") || strings.Contains(stdout, "Pod:") {
		t.Errorf("stat:\n%s", stdout)
	}
	eve.wantOutput("rows\n", "cat", "pvc/data-web-0:table.db")
	eve.wantOutput("rows\n", "cat", name+":table.db")
	eve.wantOutput("table.db\n", "ls", name+":")
	to := t.TempDir()
	if code, _, stderr := eve.run("cp", "pvc/data-web-0", to+"/"); code != 0 {
		t.Errorf("cp: %d %s", code, stderr)
	}
	vic.wantFailure(1, []string{"may list retained volumes in namespace ci, and not read their files"}, "cat", name+":table.db")
	bob.wantFailure(1, []string{"may not"}, "-n", "ci", "cat", name+":table.db")
	bob.wantFailure(4, []string{"no such retained volume"}, "-n", "etl", "cat", name+":table.db")
	eve.wantFailure(4, []string{"no retained volume in namespace ci matches pvc/other"}, "cat", "pvc/other:x")
	eve.wantFailure(1, []string{"copy its files"}, "debug", name)

	// The namespace is made anew.
	c.Namespace("ci", volume.Tenancy{UID: "uid-later"})
	eve.wantFailure(4, []string{"no such retained volume"}, "cat", name+":table.db")
}
