//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// proxiedBytes go through "kubectl proxy" at a time.
const proxiedBytes = 2 << 30

// testProxy copies 2 GiB through "kubectl proxy", as a file, as a directory and as an archive. The proxy is killed in the
// middle: the copy fails, and is completed when the command is repeated behind another proxy. A directory goes on behind its
// last complete file, so the only one comes again.
func (c *gatewayCluster) testProxy() {
	v := c.retained("ci", 1, filled("proxied", proxiedBytes))
	want := c.digestOf(c.dataFile(1, v))
	for _, copied := range []struct {
		file string // what has the bytes; empty where they are in an archive
		args []string
	}{
		{"copy", []string{v.Metadata.Name + ":data"}},
		{"copy/data", []string{v.Metadata.Name}},
		{"", []string{"--tar", v.Metadata.Name}},
	} {
		dir := c.t.TempDir()
		args := append(append([]string{"cp", "-n", "ci"}, copied.args...), "copy")
		first, kill := c.as(bob).proxy()
		goOn := first.begin(dir, longBytes, proxiedBytes, args...)
		kill()
		if err := goOn(); err == nil || !strings.Contains(err.Error(), "the stream was cut") {
			c.t.Errorf("%q behind a proxy that was killed: %v", args, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "copy")); !errors.Is(err, os.ErrNotExist) {
			c.t.Errorf("%q behind a proxy that was killed looks complete: %v", args, err)
		}
		if copied.file == "" {
			continue
		}
		began := time.Now()
		second, kill := c.as(bob).proxy()
		s := second.katbox(dir, args...)
		kill()
		if s.code != 0 {
			c.t.Fatalf("%q, repeated: %d, %s", args, s.code, s.stderr)
		}
		c.t.Logf("%q, repeated, took %s: %s", args, time.Since(began).Round(time.Second), s.stderr)
		if got := c.digestOf(filepath.Join(dir, copied.file)); got != want {
			c.t.Errorf("%q gives the digest %s, want %s", args, got, want)
		}
	}
	c.as(bob).does("rm", "--yes", "-n", "ci", v.Metadata.Name)
}

// proxy starts "kubectl proxy" as a person, who then asks through it, until it is killed.
func (p person) proxy() (through person, kill func()) {
	p.t.Helper()
	cmd := p.command(p.t.TempDir(), "kubectl", "proxy", "--port", "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	kill = func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
	p.t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "Starting to serve on ")
	if err != nil || !found {
		p.t.Fatalf("kubectl proxy printed %q: %v", line, err)
	}
	through = p
	through.kubeconfig = filepath.Join(p.t.TempDir(), "kubeconfig")
	content := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: proxy, contexts: [{name: proxy, context: {cluster: proxy}}], "+
		"clusters: [{name: proxy, cluster: {server: 'http://%s'}}]}\n", address)
	if err := os.WriteFile(through.kubeconfig, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return through, kill
}
