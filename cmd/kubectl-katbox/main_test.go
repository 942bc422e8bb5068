package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/testing/clustertest"
)

// TestMain runs the program if a shell would: completion starts itself once more.
// asUsers is an environment variable: a shell waits for names as long as it does for users. Otherwise a test gives them
// the time that a busy machine needs.
const asUsers = "KATBOX_COMPLETE_AS_USERS"

func TestMain(m *testing.M) {
	if os.Getenv(asUsers) == "" {
		completeLimit = 30 * time.Second
	}
	if len(os.Args) > 1 && (os.Args[1] == "__complete" || os.Args[1] == "__candidates") {
		os.Exit(run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// user is a user of a cluster who types commands.
type user struct {
	t          *testing.T
	kubeconfig string // empty for a user without one
}

// as returns a user. The namespace of the kubeconfig is ci.
func as(t *testing.T, c *clustertest.Cluster, name string) user {
	t.Helper()
	return user{t, c.Kubeconfig(name)}
}

// run runs the program as kubectl does.
func (u user) run(args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	return u.runIn(u.t.Context(), args...)
}

func (u user) runIn(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	var out, complaints bytes.Buffer
	all := append([]string{"/usr/bin/kubectl-katbox"}, args...)
	if u.kubeconfig != "" && !slices.Contains(args, "--kubeconfig") {
		all = append(all, "--kubeconfig", u.kubeconfig)
	}
	code = run(ctx, all, strings.NewReader(""), &out, &complaints)
	return code, out.String(), complaints.String()
}

// wantFailure wants an exit code, nothing on stdout, and parts of what is on stderr.
func (u user) wantFailure(code int, parts []string, args ...string) {
	u.t.Helper()
	got, stdout, stderr := u.run(args...)
	if got != code || stdout != "" {
		u.t.Errorf("%q: code %d, stdout %q, stderr %q; want code %d", args, got, stdout, stderr, code)
	}
	for _, part := range parts {
		if !strings.Contains(stderr, part) {
			u.t.Errorf("%q: stderr %q lacks %q", args, stderr, part)
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestProgramName(t *testing.T) {
	for called, want := range map[string]string{
		"/usr/local/bin/kubectl-katbox": "kubectl katbox", "kubectl-katbox.exe": "kubectl katbox", "kubectl-kat_box": "kubectl kat-box",
		"./katbox": "katbox",
	} {
		if got := programName(called); got != want {
			t.Errorf("called as %s: %q, want %q", called, got, want)
		}
		if help := program(called).Verbs[0].Notes; !strings.Contains(help, "  "+want+" list") {
			t.Errorf("called as %s, the examples are %s", called, help)
		}
	}
}

// TestConnectionFlagsBeforeTheVerb are taken as those behind it.
func TestConnectionFlagsBeforeTheVerb(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"", ""},
		{"list", "list"},
		{"list --context x", "list --context x"},
		{"--context x list -o json", "list --context x -o json"},
		{"-n ci -A --as=eve list pod/x", "list -n ci -A --as=eve pod/x"},
		{"--help", "--help"},
		{"--unknown list", "--unknown list"},
		{"-- list", "-- list"},
		{"--context x", "--context x"},
	} {
		if got := strings.Join(verbFirst(strings.Fields(row.args)), " "); got != row.want {
			t.Errorf("%q: %q, want %q", row.args, got, row.want)
		}
	}
}

// TestConnection: context, namespace, user and server are chosen as kubectl chooses them.
func TestConnection(t *testing.T) {
	// The API server of a pod that the test may run in is not meant.
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_MASTER", "")
	c := clustertest.New(t)
	n := c.Node("n1")
	ci, _ := n.Put(1, "ci", "nightly", "nightly-x7k2p")
	etl, _ := n.Put(2, "etl", "nightly", "nightly-a2b3c")
	admin := as(t, c, "admin")
	for _, row := range []struct{ args, want string }{
		{"list -o name", ci},
		{"list -o name -n etl", etl},
		{"-n etl list -o name", etl},
		{"list -o name --context etl", etl},
		{"--context etl list -o name", etl},
		{"list -o name -n namespace/etl", etl},
		{"list -o name -A", ci + "\n" + etl},
		{"list -o name -A -n etl", ci + "\n" + etl},
		{"list -o name --as eve", ci},
		{"list -o name -n etl --as bob", etl},
		{"list -o name --user user --cluster test --token eve", ci},
		{"list -o name -s " + c.URL(), ci},
	} {
		if code, stdout, stderr := admin.run(strings.Fields(row.args)...); code != 0 || strings.TrimSpace(stdout) != row.want {
			t.Errorf("%s: code %d, %q, %q; want %q", row.args, code, stdout, stderr, row.want)
		}
	}
	admin.wantFailure(verbs.CodeFailed, []string{"namespace etl"}, "list", "-n", "etl", "--as", "eve")
	admin.wantFailure(verbs.CodeFailed, []string{"none", "does not exist"}, "list", "--context", "none")
	admin.wantFailure(verbs.CodeFailed, []string{"no-file"}, "list", "--kubeconfig", "no-file")
	empty := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(empty, nil, 0o600))
	admin.wantFailure(verbs.CodeFailed, []string{"there is no kubeconfig that names a cluster"}, "list", "--kubeconfig", empty)
	admin.wantFailure(verbs.CodeFailed, []string{"cannot be reached", "127.0.0.1:1"}, "list", "--server", "https://127.0.0.1:1")
	admin.wantFailure(verbs.CodeFailed, []string{"certificate"}, "list", "--tls-server-name", "other.example")
	admin.wantFailure(verbs.CodeFailed, []string{"credentials"}, "list", "--token", "stranger")
	admin.wantFailure(verbs.CodeUsage, []string{"unknown flag: --unknown"}, "list", "--unknown")
	admin.wantFailure(verbs.CodeUsage, []string{"no verb"}, "unknown")
}

// TestNamesThatAreNone: what cannot be a namespace is wrong usage, and the message is about it alone.
func TestNamesThatAreNone(t *testing.T) {
	c := clustertest.New(t)
	eve := as(t, c, "eve")
	for _, name := range []string{"a/b/c", "../x", "UPPER"} {
		eve.wantFailure(verbs.CodeUsage, []string{`list: "` + name + `" is not the name of a namespace: see -n`}, "list", "-n", name)
	}
	if asked := c.Requests(); len(asked) > 0 {
		t.Errorf("asked: %q", asked)
	}
	// Of the flags before the verb, only those of the connection may be there.
	eve.wantFailure(verbs.CodeUsage, []string{"the verb comes first", "help"}, "-o", "json", "list")
}

// TestDistinguish: nothing is taken for granted about the names of volumes.
func TestDistinguish(t *testing.T) {
	parts := []verbs.Part{{Pod: "a", Name: "x"}, {Pod: "a", Name: "x"}, {Pod: "b", Name: "x"}}
	parts[0].Volume.Target, parts[1].Volume.Target = "a.q3fd7k2m9c4a", "a"
	distinguish(parts)
	if parts[0].Name != "x.q3fd7k2m9c4a" || parts[1].Name != "x.a" || parts[2].Name != "x" {
		t.Errorf("%+v", parts)
	}
}
