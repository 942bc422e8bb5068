package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/testing/clustertest"
	"github.com/katbox/katbox/internal/testing/terminaltest"
)

// TestCompletionWhileAProgramWaitsForALogin: the shell gets its answer, the program that waits has ended with all that
// it started, and could neither ask nor write into the command line.
func TestCompletionWhileAProgramWaitsForALogin(t *testing.T) {
	for name, script := range map[string]string{
		"waits":         `sleep 600`,
		"its child":     `sleep 600 & wait`,
		"is stubborn":   `trap "" TERM HUP INT; while :; do sleep 600; done`,
		"reads":         `read answer </dev/tty; sleep 600`,
		"reads the end": `read answer; sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			alive, started := filepath.Join(dir, "alive"), filepath.Join(dir, "started")
			must(t, syscall.Mkfifo(alive, 0o600))
			// As long as one of its processes is there, the fifo has no end.
			path := kubeconfigOf(t, clustertest.New(t), fmt.Sprintf(
				`exec 3<>%s; >%s; echo log in >&2; (echo log in >/dev/tty) 2>/dev/null; %s`, alive, started, script))
			// On a busy machine the time may be over before the program has started.
			for _, err := os.Stat(started); err != nil; _, err = os.Stat(started) {
				if said, shown := completeOnTerminal(t, "--kubeconfig", path, "rm", ""); said != ":4\n" || shown != "" {
					t.Fatalf("said %q, and the terminal shows %q", said, shown)
				}
			}
			f, err := os.OpenFile(alive, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			must(t, err)
			defer f.Close()
			if _, err := io.ReadAll(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// completeOnTerminal completes as a shell on a terminal does. It returns what the shell reads and what the terminal
// shows.
func completeOnTerminal(t *testing.T, words ...string) (said, shown string) {
	t.Helper()
	screen := terminaltest.Open(t)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, append([]string{"__complete"}, words...)...)
	cmd.Stdin, cmd.Stderr = screen.Back, screen.Back
	cmd.Env = append(os.Environ(), asUsers+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	out, err := cmd.Output()
	must(t, err, screen.Back.Close())
	return string(out), screen.Shown()
}

// TestCompletionWithAProgramThatLogsIn: one that needs no user is asked for the credentials.
func TestCompletionWithAProgramThatLogsIn(t *testing.T) {
	c, names := nightly(t)
	path := kubeconfigOf(t, c, `echo welcome >&2
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"vic"}}'`)
	var out strings.Builder
	code := run(t.Context(), []string{"kubectl-katbox", "__complete", "--kubeconfig", path, "rm", names[2]}, strings.NewReader(""), &out, &out)
	if code != 0 || !strings.HasPrefix(out.String(), names[2]+"\t") || !strings.HasSuffix(out.String(), "\n:4\n") {
		t.Errorf("code %d: %s", code, &out)
	}
}

// TestCompletionWithAProgramThatStaysBehind: what the program for the credentials leaves running, which may write
// errors for as long as it likes, keeps no user waiting, and what was found is offered.
func TestCompletionWithAProgramThatStaysBehind(t *testing.T) {
	c, names := nightly(t)
	for what, start := range map[string]string{"in its group": "sleep 600", "in a session of its own": "setsid sleep 600"} {
		t.Run(what, func(t *testing.T) {
			pid := filepath.Join(t.TempDir(), "pid")
			path := kubeconfigOf(t, c, start+` >/dev/null & echo $! >>`+pid+`
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"vic"}}'`)
			var out strings.Builder
			answered := make(chan int, 1)
			go func() {
				answered <- run(t.Context(), []string{"kubectl-katbox", "__complete", "--kubeconfig", path, "rm", names[2]},
					strings.NewReader(""), &out, &out)
			}()
			select {
			case <-answered:
			case <-time.After(time.Minute):
				t.Error("the shell waits for what stayed behind")
			}
			text, err := os.ReadFile(pid)
			must(t, err)
			for one := range strings.FieldsSeq(string(text)) {
				number, err := strconv.Atoi(one)
				must(t, err)
				_ = syscall.Kill(number, syscall.SIGKILL) // it may have ended with its group
			}
			if t.Failed() {
				<-answered
			}
			if !strings.HasPrefix(out.String(), names[2]+"\t") || !strings.HasSuffix(out.String(), "\n:4\n") {
				t.Errorf("offered %q", &out)
			}
		})
	}
}

// kubeconfigOf returns a kubeconfig whose user has the credentials that a script writes.
func kubeconfigOf(t *testing.T, c *clustertest.Cluster, script string) string {
	t.Helper()
	path := c.Kubeconfig("stranger")
	config, err := clientcmd.LoadFromFile(path)
	must(t, err)
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", script},
		InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}}
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}
