package main

import (
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/volume"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]target{
		"web-0":                        {pod: "web-0"},
		"pod/web-0":                    {pod: "web-0"},
		"po/web-0":                     {pod: "web-0"},
		"PODS/web-0":                   {pod: "web-0"},
		"job/nightly":                  {job: "nightly"},
		"job.batch/nightly":            {job: "nightly"},
		"pvc/data":                     {claim: "data"},
		"workflow/etl-x7k2q":           {owner: "workflow/etl-x7k2q"},
		"RayCluster.ray.io/tune":       {owner: "raycluster/tune"},
		"statefulset/web:a":            {owner: "statefulset/web", hasPath: true, path: "a"},
		"PersistentVolumeClaims/a:b":   {claim: "a", hasPath: true, path: "b"},
		"a.b.c":                        {pod: "a.b.c"},
		"web-0.q3fd7k2m9c4a":           {volume: "web-0.q3fd7k2m9c4a"},
		"a.b.q3fd7k2m9c4a":             {volume: "a.b.q3fd7k2m9c4a"},
		"pod/web-0.q3fd7k2m9c4a":       {pod: "web-0.q3fd7k2m9c4a"},
		"web-0.q3fd7k2m9c4":            {pod: "web-0.q3fd7k2m9c4"},
		"web-0.q3fd7k2m9c4o":           {pod: "web-0.q3fd7k2m9c4o"}, // o is no digit
		"rv/anything":                  {volume: "anything"},
		"web-0:":                       {pod: "web-0", hasPath: true, path: "/"},
		"web-0:/":                      {pod: "web-0", hasPath: true, path: "/"},
		"web-0:a b/c%d":                {pod: "web-0", hasPath: true, path: "a%20b/c%25d"},
		"job/nightly:a:b":              {job: "nightly", hasPath: true, path: "a%3Ab"},
		"web-0::out/a%0Ab":             {pod: "web-0", hasPath: true, path: "out/a%0Ab"},
		"web-0.q3fd7k2m9c4a:/out/log/": {volume: "web-0.q3fd7k2m9c4a", hasPath: true, path: "out/log"},
	} {
		got, err := parseTarget(text)
		if want.path != "" && err == nil {
			// Which of the forms of a path is used is for the API to say.
			ref, wrong := verbs.ParsePath(strings.TrimPrefix(text, strings.SplitN(text, ":", 2)[0]+":"))
			must(t, wrong)
			want.path = ref
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ":", ":a", "/", "/a", "a/", "pod/", "job/:x", "a_b/c", "a/b/c", "job/a/b", "A", "a_b", "-a", "a..b", "a b", "\x1b",
		"a:..", "a:b/../..", strings.Repeat("a", 254), "a::%zz",
	} {
		if got, err := parseTarget(text); err == nil || verbs.CodeOf(err) != verbs.CodeUsage {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// TestChoose: one volume, or what to type instead.
func TestChoose(t *testing.T) {
	c, names := nightly(t)
	eve := as(t, c, "eve")
	// rm without a terminal resolves no target, and with --yes it deletes: so only what fails is shown.
	for _, row := range []struct {
		args  string
		code  int
		parts []string
	}{
		{"job/nightly", 1, []string{names[0], names[1], "2 retained volumes match job/nightly: give one of these names, or --last"}},
		{"job/nightly --volume other", 4, []string{
			"job/nightly has retained volumes in namespace ci, but none that --volume and --selector choose",
		}},
		{"job/nightly -l katbox.io/foreign=true", 4, []string{"none that --volume and --selector choose"}},
		{"nightly", 4, []string{"no retained volume in namespace ci is of a pod nightly, but there are some of the Job: give job/nightly"}},
		{"nothing", 4, []string{"no retained volume in namespace ci matches pod/nothing", "kubectl exec"}},
		{"nothing -A", 1, []string{"user eve may not list retained volumes in all namespaces"}},
		{"load-q1w2e", 4, []string{"no retained volume in namespace ci matches"}},
		{names[4], 4, []string{"another namespace than ci"}},
		{"job/nightly:log", 2, []string{"whole volumes are deleted"}},
	} {
		eve.wantFailure(row.code, row.parts, append([]string{"rm", "--yes"}, strings.Fields(row.args)...)...)
	}
	n := c.Node("n3")
	for i := range mostMatches + 1 {
		n.Put(1000+i, "ci", "crowd", "crowd-x7k2p")
	}
	eve.wantFailure(1, []string{"more than 20 retained volumes match job/crowd"}, "rm", "--yes", "job/crowd")
	if n.Volumes() != mostMatches+1 {
		t.Errorf("%d volumes are left", n.Volumes())
	}
}

// TestRemove deletes what the choice is, and says what that was.
func TestRemove(t *testing.T) {
	for args, at := range map[string]int{
		"job/nightly --last": 0, "job/nightly --volume cache": 1, "weekly-z9y8x": 2, "-l katbox.io/owner-kind=StatefulSet web-0": 3,
		"job/weekly": 2, "-A load-q1w2e --as admin --token admin": 4, "-n etl job/load --as bob --token admin": 4,
	} {
		c, names := nightly(t)
		admin := as(t, c, "admin")
		code, stdout, stderr := as(t, c, "eve").run(append([]string{"rm", "--yes"}, strings.Fields(args)...)...)
		if code != 0 || stdout != "" || !strings.HasPrefix(stderr, "deleted volume ") || !strings.Contains(stderr, names[at]) {
			t.Errorf("rm %s: code %d, %q, %q", args, code, stdout, stderr)
		}
		if _, left, _ := admin.run("list", "-A", "-o", "name"); strings.Contains(left, names[at]) || strings.Count(left, "\n") != len(names)-1 {
			t.Errorf("after rm %s there are\n%s", args, left)
		}
	}
}

func TestRemoveByNameNeedsNoList(t *testing.T) {
	c, names := nightly(t)
	eve := as(t, c, "eve")
	if code, _, stderr := eve.run("rm", "--yes", names[2]); code != 0 {
		t.Errorf("code %d, %q", code, stderr)
	}
	for _, asked := range c.Requests() {
		if strings.Contains(asked, "retainedvolumes?") {
			t.Errorf("rm of a name listed volumes: %s", asked)
		}
	}
	eve.wantFailure(verbs.CodeNoVolume, []string{names[2], "expired, was deleted"}, "rm", "--yes", names[2])
	as(t, c, "vic").wantFailure(1, []string{"may list retained volumes in namespace ci, and not delete them"}, "rm", "--yes", names[0])
	eve.wantFailure(verbs.CodeUsage, []string{"give --yes"}, "rm", names[0])
}

// TestRemoveIsCertain: without a question nothing is deleted while a node is silent that may have another
// match, or a newer one.
func TestRemoveIsCertain(t *testing.T) {
	c, names := nightly(t)
	c.Lost("n9")
	eve := as(t, c, "eve")
	for _, args := range []string{"weekly-z9y8x", "job/nightly --last", "job/nightly --volume cache"} {
		rm := append([]string{"rm", "--yes"}, strings.Fields(args)...)
		eve.wantFailure(1, []string{"nodes did not answer", "may match", "give the name "}, rm...)
	}
	if _, left, _ := as(t, c, "admin").run("list", "-A", "-o", "name"); strings.Count(left, "\n") != len(names) {
		t.Errorf("left are\n%s", left)
	}
	for i, args := range [][]string{{names[2]}, {names[0], "--volume", "scratch"}} {
		if code, _, stderr := eve.run(append([]string{"rm", "--yes"}, args...)...); code != 0 {
			t.Errorf("%d: a volume's name is certain, but: code %d, %q", i, code, stderr)
		}
	}
}

// TestDescribeUnknown: a volume of which little is known has a name all the same.
func TestDescribeUnknown(t *testing.T) {
	c, _ := nightly(t)
	name, _ := c.Node("n5").Put(7, "katbox", "", "", func(d *volume.Description) {
		d.Record.Namespace, d.Record.PodName, d.Record.VolumeName, d.Record.Owner = "", "", "", volume.Owner{}
	})
	code, _, stderr := as(t, c, "admin").run("rm", "--yes", "-n", "katbox", name)
	if code != 0 || !strings.Contains(stderr, "deleted volume "+name) {
		t.Errorf("code %d, %q", code, stderr)
	}
}
