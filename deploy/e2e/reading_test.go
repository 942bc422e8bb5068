//go:build e2e

package e2e

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// testReading: what pods left is found and read by kubectl exec in the daemon's container, and with
// nothing else.
func (c *cluster) testReading() {
	const lines = "reads the input\nwrites the output\nthe input ends in the middle\n"
	script := fmt.Sprintf("mkdir /scratch/out; ln -s /etc/shadow /scratch/link; printf %q > /scratch/out/log; exit 1", lines)
	uid := c.fails(pod{Name: "nightly-x7k2p", Scripts: []string{script}})
	elsewhere := c.inNamespace("elsewhere")
	elsewhere.fails(pod{Name: "other-9fz1c", Scripts: []string{"echo secret > /scratch/log; exit 1"}})
	const target = "default/nightly-x7k2p"

	list := c.katbox("ls", "-n", "default")
	c.wantIn(list, "nightly-x7k2p", "scratch")
	if strings.Contains(list, "other-9fz1c") {
		c.t.Errorf("the volumes of namespace default have one of another: %s", list)
	}
	c.wantIn(c.katbox("ls"), "nightly-x7k2p", "other-9fz1c")
	c.wantIn(c.katbox("ls", "-l", target+":"), "out", "link", "/etc/shadow")
	c.wantIn(c.katbox("stat", target+":out/log"), fmt.Sprint(len(lines)))
	if got := c.katbox("cat", target+":out/log"); got != lines {
		c.t.Errorf("cat: %q, want %q", got, lines)
	}
	if got := c.katbox("tail", "--lines", "1", target+":out/log"); got != "the input ends in the middle\n" {
		c.t.Errorf("tail: %q, want the last line", got)
	}
	c.wantTar(c.katbox("cp", target, "-"), map[string]string{"out/log": lines, "link": "/etc/shadow"})
	c.wantIn(c.katbox("top"), "default", "elsewhere")
	c.wantIn(c.katbox("top", "--pods"), "nightly-x7k2p", "other-9fz1c")
	c.wantIn(c.katbox("report"), c.node(), "--afterlifespan", "katbox_volumes", "katbox_build_info")

	c.wantExit(1, "cat", target+":link")
	c.wantExit(4, "cat", "default/other-9fz1c:log")
	c.want(c.file(uid, "out/log"), lines)
	c.katbox("rm", "--yes", target)
	c.wantExit(4, "cat", target+":out/log")
	if left := c.data(uid); len(left) > 0 {
		c.t.Errorf("after rm there is still %q", left)
	}
	c.kubectl("delete", "namespace", "elsewhere", "--wait=false")
	c.wantNoMounts()
}

// fails runs a pod to its end, which is a failure, deletes it and returns its UID.
func (c *cluster) fails(p pod) string {
	c.t.Helper()
	uid := c.create(p)
	c.wantPhase(p.Name, "Failed")
	c.end(p.Name)
	return uid
}

// katbox runs a verb in the daemon's container, and returns what it prints.
func (c *cluster) katbox(args ...string) string {
	c.t.Helper()
	out, err := c.tryKatbox(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *cluster) tryKatbox(args ...string) (string, error) {
	return c.tryKubectl("", append([]string{"--namespace", namespace, "exec", "daemonset/katbox", "--", "/katbox"}, args...)...)
}

// wantExit fails unless a verb ends with this code. kubectl's is the same, and it prints it.
func (c *cluster) wantExit(code int, args ...string) {
	c.t.Helper()
	out, err := c.tryKatbox(args...)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("exit code %d", code)) {
		c.t.Errorf("katbox %q: %v, printed %q; want exit code %d", args, err, out, code)
	}
}

// wantIn fails unless each part is in the text.
func (c *cluster) wantIn(text string, parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.t.Errorf("%q is not in %s", part, text)
		}
	}
}

// wantTar fails unless an archive has these files, by their content, and symbolic links, by their
// targets, and beside them only directories.
func (c *cluster) wantTar(archive string, want map[string]string) {
	c.t.Helper()
	got := map[string]string{}
	reader := tar.NewReader(strings.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.t.Fatalf("after %q: %v", slices.Sorted(maps.Keys(got)), err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		switch header.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(reader)
			if err != nil {
				c.t.Fatalf("%s: %v", name, err)
			}
			got[name] = string(content)
		case tar.TypeSymlink:
			got[name] = header.Linkname
		}
	}
	if !maps.Equal(got, want) {
		c.t.Errorf("the archive has %q, want %q", got, want)
	}
}
