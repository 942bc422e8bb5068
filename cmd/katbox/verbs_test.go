package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestVerbsAndDaemonAreOneProgram: a first argument without a hyphen is a verb; everything else is
// the daemon's.
func TestVerbsAndDaemonAreOneProgram(t *testing.T) {
	missing := t.TempDir() + "/admin.sock"
	for _, test := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--version"}, 0, "katbox dev (unknown commit)\n", ""},
		{[]string{"help"}, 0, "katbox --nodeid NAME runs the daemon", ""},
		{[]string{"--help"}, 0, "--afterlifespan duration", ""},
		{[]string{"--help"}, 0, "lists retained volumes", ""},
		{[]string{"cp", "--help"}, 0, "katbox cp TARGET[:PATH] DEST\n", ""},
		{[]string{"ls", "--socket", missing}, 1, "", "katbox ls: there is no admin socket " + missing},
		{[]string{"list"}, 2, "", "katbox: there is no verb list; did you mean ls? see katbox help\n"},
		{[]string{}, 1, "", "katbox: --nodeid is missing"},
		{[]string{"--nodeid", "n", "ls"}, 1, "", `katbox: unexpected argument "ls"`},
	} {
		code, stdout, stderr := katbox(t, test.args...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) ||
			(test.stderr == "") != (stderr == "") {
			t.Errorf("katbox %q: exit code %d, want %d; stdout %q, want %q; stderr %q, want %q",
				test.args, code, test.code, stdout, test.stdout, stderr, test.stderr)
		}
	}
}

// TestVerbsWithARealDaemon: from a pod that has gone to its files, as a person does it.
func TestVerbsWithARealDaemon(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	d.start()
	id := volumeID(1)
	req := d.request(testPod, id)
	maps.Copy(req.VolumeContext, map[string]string{
		"csi.storage.k8s.io/pod.namespace": "etl", "csi.storage.k8s.io/pod.name": "nightly-x7k2p",
	})
	if _, err := d.node.NodePublishVolume(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	must(t, os.MkdirAll(d.target(testPod)+"/out", 0o755))
	must(t, os.WriteFile(d.target(testPod)+"/out/log.txt", []byte("one\ntwo\n"), 0o600))
	t.Setenv("KATBOX_ADMIN_SOCKET", d.layout().Admin)
	want := func(code int, stdout, stderr string, args ...string) {
		t.Helper()
		gotCode, gotOut, gotErr := katbox(t, args...)
		if gotCode != code || !strings.Contains(gotOut, stdout) || !strings.Contains(gotErr, stderr) {
			t.Errorf("katbox %q: exit code %d, want %d; stdout %q, want %q; stderr %q, want %q", args, gotCode, code, gotOut, stdout, gotErr, stderr)
		}
	}
	want(4, "", "read its files with kubectl exec", "cat", "etl/nightly-x7k2p:out/log.txt")
	want(1, "", "kubectl exec", "cat", id+":out/log.txt")
	d.unpublish(testPod, id)
	want(0, "etl/nightly-x7k2p/scratch\n", "", "ls", "-n", "etl", "-o", "name")
	want(0, "in 59m", "", "ls")
	want(0, "etl/nightly-x7k2p/scratch:out/log.txt\n", "", "ls", "-R", "-o", "name", "etl/nightly-x7k2p:")
	want(0, "two\n", "", "tail", "-n", "1", "etl/nightly-x7k2p:out/log.txt")
	copied := t.TempDir()
	want(0, "", "", "cp", "etl/nightly-x7k2p", copied)
	if got, err := os.ReadFile(copied + "/out/log.txt"); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("the copy has %q, %v", got, err)
	}
	want(0, "etl ", "", "top")
	want(0, "katbox", "", "report")
	want(0, "", "deleted volume scratch of pod etl/nightly-x7k2p", "rm", "--yes", "etl/nightly-x7k2p")
	want(4, "", "there is no volume with the ID", "stat", id)
	d.eventually("deleted", d.gone(testPod, id))
	d.signal(syscall.SIGTERM)
	want(1, "", d.layout().Admin, "ls")
}

// katbox runs the program with arguments.
func katbox(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errors.String()
}
