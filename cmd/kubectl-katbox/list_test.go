package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// nightly is a cluster with volumes of two Jobs, and their names, the newest first. Number 4 is of another
// namespace.
func nightly(t *testing.T) (c *clustertest.Cluster, names []string) {
	t.Helper()
	c = clustertest.New(t)
	n1, n2 := c.Node("n1"), c.Node("n2")
	names = make([]string, 5)
	names[0], _ = n1.Put(3, "ci", "nightly", "nightly-x7k2p")
	names[1], _ = n2.Put(130, "ci", "nightly", "nightly-a2b3c", func(d *volume.Description) { d.Record.VolumeName = "cache" })
	names[2], _ = n2.Put(200, "ci", "weekly", "weekly-z9y8x")
	names[3], _ = n1.Put(400, "ci", "", "web-0", func(d *volume.Description) {
		d.Record.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "uid-ci", Kind: "StatefulSet", Name: "web"}
	})
	names[4], _ = n1.Put(500, "etl", "load", "load-q1w2e")
	return c, names
}

func TestList(t *testing.T) {
	c, names := nightly(t)
	admin := as(t, c, "admin")
	for _, row := range []struct {
		args string
		want []int
	}{
		{"", []int{0, 1, 2, 3}},
		{"-A", []int{0, 1, 2, 3, 4}},
		{"-n etl", []int{4}},
		{"--job nightly", []int{0, 1}},
		{"job/nightly", []int{0, 1}},
		{"jobs.batch/nightly", []int{0, 1}},
		{"--pod web-0", []int{3}},
		{"web-0", []int{3}},
		{"pod/nightly-x7k2p", []int{0}},
		{"statefulset/web", []int{3}},
		{"StatefulSet.apps/web", []int{3}},
		{"replicaset/web", nil},
		{"--node n1", []int{0, 3}},
		{"--node n1 --job nightly", []int{0}},
		{"job/nightly --node n2", []int{1}},
		{"job/nightly --volume cache", []int{1}},
		{"--volume cache --limit 1", []int{1}},
		{names[2], []int{2}},
		{"rv/" + names[2], []int{2}},
		{"retainedvolume.katbox.io/" + names[2], []int{2}},
		{"-A -l katbox.io/owner-kind=StatefulSet", []int{3}},
		{"-l batch.kubernetes.io/job-name!=nightly", []int{2, 3}},
		{"job/nightly -l katbox.io/owner-kind=StatefulSet", nil},
		{"--since 150m", []int{0, 1}},
		{"--since 1m", nil},
		{"--since 7h", []int{0, 1, 2, 3}},
		{"--limit 2", []int{0, 1}},
		{"-A --limit 5", []int{0, 1, 2, 3, 4}},
		{"--strict", []int{0, 1, 2, 3}},
		{"job/nothing", nil},
		{"pod/nothing --strict", nil},
	} {
		code, stdout, stderr := admin.run(append(strings.Fields("list -o name "+row.args), []string(nil)...)...)
		var want strings.Builder
		for _, i := range row.want {
			want.WriteString(names[i] + "\n")
		}
		if code != 0 || stdout != want.String() || (row.want == nil) != strings.Contains(stderr, "no retained volumes") {
			t.Errorf("list %s: code %d, %q, %q; want %q", row.args, code, stdout, stderr, want.String())
		}
	}
	for args, want := range map[string]string{
		"nightly":                      "no retained volumes of pod/nightly in namespace ci; there are some of the Job: give job/nightly\n",
		"job/nothing --node n1":        "no retained volumes of job/nothing on node n1 in namespace ci\n",
		"--volume cachet --since 150m": "no retained volumes named cachet of the last 150m in namespace ci\n",
		"-A -l katbox.io/foreign=true": "no retained volumes with the labels katbox.io/foreign=true\n",
	} {
		if code, stdout, stderr := admin.run(strings.Fields("list " + args)...); code != 0 || stdout != "" || stderr != want {
			t.Errorf("list %s: code %d, %q, %q; want %q", args, code, stdout, stderr, want)
		}
	}
	admin.wantFailure(verbs.CodeNoVolume, []string{"there is no retained volume gone-x7k2p.q3fd7k2m9c4a in namespace ci: it expired"},
		"list", "gone-x7k2p.q3fd7k2m9c4a")
}

// TestListForms: what a list shows, as a table and for programs.
func TestListForms(t *testing.T) {
	c, names := nightly(t)
	admin := as(t, c, "admin")
	if _, stdout, _ := admin.run("list", "job/nightly"); stdout != ""+
		"NAME                        VOLUME   OWNER        OUTCOME  SIZE  RETAINED   EXPIRES\n"+
		names[0]+"  scratch  job/nightly  -        -     3m ago     in 2d2h\n"+
		names[1]+"  cache    job/nightly  -        -     2h10m ago  in 2d2h\n" {
		t.Errorf("table\n%s", stdout)
	}
	if _, stdout, _ := admin.run("list", "-A", "-o", "wide", "--pod", "load-q1w2e"); stdout != ""+
		"NAMESPACE  NAME                     VOLUME   OWNER     OUTCOME  SIZE  RETAINED   EXPIRES  POD         NODE  POD-UID\n"+
		"etl        "+names[4]+"  scratch  job/load  -        -     8h20m ago  in 2d2h  load-q1w2e  n1    pod-n1-500\n" {
		t.Errorf("wide table\n%s", stdout)
	}
	for _, form := range []string{"json", "yaml"} {
		for _, target := range []string{"job/nightly", "job/nothing"} {
			code, stdout, stderr := admin.run("list", "-o", form, target)
			var list resource.RetainedVolumeList
			read := json.Unmarshal
			if form == "yaml" {
				read = func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) }
			}
			if err := read([]byte(stdout), &list); err != nil || code != 0 || list.Kind != resource.ListKind ||
				list.APIVersion != resource.GroupVersion.String() || list.Items == nil {
				t.Errorf("%s of %s: %v, code %d, %q\n%s", form, target, err, code, stderr, stdout)
				continue
			}
			if target == "job/nightly" && (len(list.Items) != 2 || list.Items[1].Name != names[1] || list.Items[1].Spec.VolumeName != "cache") {
				t.Errorf("%s: %+v", form, list.Items)
			}
		}
	}
}

// TestListOfManyPages: more volumes than a page has, with a limit that no page has.
func TestListOfManyPages(t *testing.T) {
	c := clustertest.New(t)
	n := c.Node("n1")
	const volumes = pageSize + 30
	for i := range volumes {
		n.Put(i+1, "ci", "many", fmt.Sprintf("many-%05d", i))
	}
	vic := as(t, c, "vic")
	for limit, want := range map[int]int{0: volumes, pageSize + 1: pageSize + 1, pageSize: pageSize, volumes + 5: volumes} {
		code, stdout, stderr := vic.run("list", "-o", "name", "--limit", fmt.Sprint(limit))
		if lines := strings.Count(stdout, "\n"); code != 0 || lines != want || stderr != "" {
			t.Errorf("limit %d: code %d, %d lines, %q; want %d lines", limit, code, lines, stderr, want)
		}
	}
}

// TestListOfAPartOfTheFleet: the user learns which nodes are missing, once.
func TestListOfAPartOfTheFleet(t *testing.T) {
	c, names := nightly(t)
	c.Lost("n9")
	vic := as(t, c, "vic")
	code, stdout, stderr := vic.run("list", "-o", "name", "--limit", "2")
	if code != 0 || !strings.Contains(stdout, names[0]) || strings.Count(stderr, "Warning: ") != 1 || !strings.Contains(stderr, "n9") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr = vic.run("list", "-o", "name", "--strict")
	if code != verbs.CodeIncomplete || strings.Count(stdout, "\n") != 4 || !strings.Contains(stderr, "not complete") {
		t.Errorf("--strict: code %d, %q, %q", code, stdout, stderr)
	}
	vic.wantFailure(verbs.CodeFailed, []string{"nodes did not answer, and it may be on one of them"}, "rm", "--yes", "pod/nothing")
}

func TestListWrongUsage(t *testing.T) {
	c := clustertest.New(t)
	u := as(t, c, "vic")
	for args, part := range map[string]string{
		"a b": "unexpected argument", "a:b": "a path names a file", "a/b/c": "the namespace is given with -n",
		"e_l/a": `"e_l" is no kind of an object`,
		"UPPER": "is not a target", "job/": "is not a target", "pod/a --pod b": "give one", "job/a --job b": "give one", "--limit -1": "negative",
		"--watch --limit 3": "--watch and --limit", "-w --strict": "--watch and --strict", "-w -o yaml": "events with -o json",
		"-o xml": `"xml" is not wide`, "--since yesterday": "90m, 6h or 2d", "--since -5m": "90m, 6h or 2d", "--job a/b": "not the name of a job",
		"--node ../x": "not the name of a node", "-l a=b=c": "cannot be read", "-n ../x": "",
	} {
		code, stdout, stderr := u.run(append([]string{"list"}, strings.Fields(args)...)...)
		if code == 0 || part != "" && code != verbs.CodeUsage || stdout != "" || !strings.Contains(stderr, part) {
			t.Errorf("%s: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	if asked := c.Requests(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

// TestListWithoutTheRight: the user is told what is missing.
func TestListWithoutTheRight(t *testing.T) {
	c, _ := nightly(t)
	as(t, c, "bob").wantFailure(verbs.CodeFailed,
		[]string{"user bob may not list retained volumes in namespace ci", "the role view includes"}, "list")
	c.Uninstall()
	as(t, c, "vic").wantFailure(verbs.CodeFailed, []string{"has no APIService v1alpha1.katbox.io; install"}, "list")
}

// TestHostileNamesDoNotReachTheTerminal: what a node says may be anything.
func TestHostileNamesDoNotReachTheTerminal(t *testing.T) {
	s := &session{Session: &verbs.Session{Now: time.Now}}
	var out strings.Builder
	table := newVolumeTable(&out, s, true)
	v := resource.RetainedVolume{}
	v.Namespace, v.Name, v.Spec.PodName, v.Spec.NodeName = "a\x1b[2J", "b\nc", "d\u202ee", "f\x00"
	v.Spec.Owner = &resource.Owner{Kind: "Job\x1b", Name: "x"}
	table.row(&v)
	must(t, table.Flush())
	if strings.ContainsAny(out.String(), "\x1b\x00\u202e") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%q", out.String())
	}
	for _, form := range []string{outputName, outputJSON, outputYAML} {
		out.Reset()
		s.Stdout = &out
		l := &listing{listOptions: &listOptions{output: form}, s: s}
		w := l.writer()
		must(t, w.write([]resource.RetainedVolume{v}))
		must(t, w.end())
		if strings.ContainsAny(out.String(), "\x1b\x00\u202e") {
			t.Errorf("-o %s: %q", form, out.String())
		}
	}
}
