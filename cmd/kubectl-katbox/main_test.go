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
		var out strings.Builder
		code := run(t.Context(), []string{called, "list", "--help"}, strings.NewReader(""), &out, &out)
		if help := out.String(); code != 0 || !strings.HasPrefix(help, want+" list [TARGET]\n") || !strings.Contains(help, "\n  "+want+" list") {
			t.Errorf("called as %s: %s", called, help)
		}
	}
}

// TestHelp: the overview has each verb in a line, and each verb says what it takes. Of the flags of the connection only
// those in daily use are shown.
func TestHelp(t *testing.T) {
	u := user{t: t}
	code, overview, stderr := u.run("--help")
	if code != 0 || stderr != "" {
		t.Errorf("code %d, %q", code, stderr)
	}
	for _, args := range []string{"", "help", "--context x", "-h"} {
		if code, stdout, stderr := u.run(strings.Fields(args)...); code != 0 || stdout != overview {
			t.Errorf("%q: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	for _, verb := range program("kubectl-katbox").Commands() {
		name := verb.Name()
		if !strings.Contains(overview, "\n  "+name+" ") {
			t.Errorf("the overview lacks %s", name)
		}
		code, stdout, stderr := u.run(name, "--help")
		if code != 0 || stderr != "" || !strings.HasPrefix(stdout, verb.UseLine()+"\n\nIt "+verb.Short+".\n\n") {
			t.Errorf("%s: code %d, %q, %q", name, code, stdout, stderr)
		}
		if !strings.Contains(stdout, "--namespace string") || !strings.Contains(stdout, "-A, --all-namespaces") ||
			strings.Contains(stdout, "--context ") || strings.Contains(stdout, "--help ") {
			t.Errorf("the flags of %s are %s", name, stdout)
		}
		for _, args := range [][]string{{"help", name}, {name, "-h", "--context", "x"}, {"-n", "ci", name, "-h"}} {
			if code, same, stderr := u.run(args...); code != 0 || same != stdout {
				t.Errorf("%q: code %d, %q, %q", args, code, same, stderr)
			}
		}
	}
}

// TestNoVerb: what looks like one is suggested, also the words of kubectl.
func TestNoVerb(t *testing.T) {
	u := user{t: t}
	for args, want := range map[string]string{
		"frob":               "there is no verb frob; see kubectl katbox help",
		"help frob":          "there is no verb frob; see kubectl katbox help",
		"stta x":             "there is no verb stta; did you mean stat? see kubectl katbox help",
		"get":                "did you mean cat or grep or list?",
		"delete x":           "did you mean rm?",
		"-n ci relaese x":    "did you mean release?",
		"--yes rm x":         "unknown flag: --yes: the verb comes first, and its flags behind it; see kubectl katbox help",
		"--unknown list":     "unknown flag: --unknown",
		"list --since":       "flag needs an argument: --since; see kubectl katbox list --help",
		"rm":                 "an argument is missing: kubectl katbox rm TARGET",
		"rm x y":             `unexpected argument "y": kubectl katbox rm TARGET`,
		"check x":            `unexpected argument "x": kubectl katbox check`,
		"version --client x": "unexpected argument",
	} {
		u.wantFailure(verbs.CodeUsage, []string{want}, strings.Fields(args)...)
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
		{"-o name -n etl list", etl},
		{"-n ci -A --as=admin list -o name -n etl", ci + "\n" + etl},
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
