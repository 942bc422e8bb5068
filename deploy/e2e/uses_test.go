//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// testUses: what a pod can ask of a volume.
func (c *cluster) testUses() {
	const stranger, group = 4711, 4712
	nobody := fmt.Sprintf("runAsNonRoot: true, runAsUser: %d, runAsGroup: %d", stranger, stranger)

	uid := c.succeeds(pod{Name: "fsgroup", Security: fmt.Sprintf("%s, fsGroup: %d", nobody, group),
		Scripts: []string{"echo mine > /scratch/file"}})
	c.want(c.file(uid, "file"), "mine\n")
	c.wantOwner(c.file(uid, "file"), stranger, group)

	uid = c.succeeds(pod{Name: "nonroot", Security: nobody, Scripts: []string{"echo mine > /scratch/file"}})
	c.want(c.file(uid, "file"), "mine\n")
	c.wantOwner(c.file(uid, "file"), stranger, stranger)

	// A pod that reads only gets an empty volume; nothing of it may be written.
	refused := "if echo x > /scratch/file; then exit 1; fi; touch /scratch/file 2>&1 | grep 'Read-only file system'"
	for _, p := range []pod{{Name: "readonly", ReadOnly: true}, {Name: "mounted-readonly", MountReadOnly: true}} {
		p.Scripts = []string{refused}
		uid = c.succeeds(p)
		if _, err := os.Lstat(c.file(uid, "file")); !errors.Is(err, os.ErrNotExist) {
			c.t.Errorf("pod %s wrote: %v", p.Name, err)
		}
	}
	c.refusesWrites()

	uid = c.succeeds(pod{Name: "shared", Scripts: []string{
		"echo one > /scratch/one; until [ -e /scratch/two ]; do sleep 0.1; done",
		"until [ -e /scratch/one ]; do sleep 0.1; done; cat /scratch/one > /scratch/two",
	}})
	c.want(c.file(uid, "two"), "one\n")

	// The kubelet binds each directory once more, and takes those away before it asks for the volume's end.
	uid = c.succeeds(pod{Name: "subpaths", SubPaths: true, Scripts: []string{"echo one > /scratch/file", "echo two > /scratch/file"}})
	c.want(c.file(uid, "c0/file"), "one\n")
	c.want(c.file(uid, "c1/file"), "two\n")
	c.wantNoMounts()
	c.usesUserNamespace()
	c.examples()
}

// usesUserNamespace: root of the pod is another user on the node, and its files in the volume are root's there, as the
// runtime maps them. That needs containerd 2 and runc 1.2, and with RK_CNI a network for pods.
func (c *cluster) usesUserNamespace() {
	c.t.Helper()
	handlers := c.kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.runtimeHandlers[*].features.userNamespaces}")
	if !strings.Contains(handlers, "true") || os.Getenv("RK_CNI") == "" {
		report("a pod with a user namespace", "not run: the runtime has %q, RK_CNI=%q", handlers, os.Getenv("RK_CNI"))
		return
	}
	uid := c.succeeds(pod{Name: "own-users", UserNamespace: true, Scripts: []string{
		`read -r inside outside size < /proc/self/uid_map; [ "$inside" = 0 ] && [ "$outside" -gt 0 ] && echo mine > /scratch/file`,
	}})
	c.want(c.file(uid, "file"), "mine\n")
	c.wantOwner(c.file(uid, "file"), 0, 0)
	c.wantNoMounts()
	report("a pod with a user namespace", "ran")
}

// refusesWrites: also the mount on the node does, and not only the container's, at
// which the kubelet sees to that by itself.
func (c *cluster) refusesWrites() {
	c.t.Helper()
	p := pod{Name: "stays-readonly", ReadOnly: true, Scripts: []string{"trap 'exit 0' TERM; while :; do sleep 0.1; done"}}
	uid := c.create(p)
	c.wantPhase(p.Name, "Running")
	fields := strings.Fields(c.mountOf(uid, "scratch"))
	if len(fields) < 6 || !slices.Contains(strings.Split(fields[5], ","), "ro") {
		c.t.Errorf("the volume is mounted as %q, not read-only", fields)
	}
	c.end(p.Name)
}

// wantOwner fails unless a file belongs to a user and a group.
func (c *cluster) wantOwner(path string, user, group uint32) {
	c.t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		c.t.Error(err)
		return
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != user || stat.Gid != group {
		c.t.Errorf("%s belongs to %d:%d, want %d:%d", filepath.Base(path), stat.Uid, stat.Gid, user, group)
	}
}
