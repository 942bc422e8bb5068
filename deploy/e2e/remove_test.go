//go:build e2e

package e2e

import "fmt"

// testRemove: Katbox is removed while a pod runs, and the pod ends while it is away.
func (c *cluster) testRemove() {
	w := c.startWriter("through-removal")
	stays := c.startWriter("stays")
	retained := c.volumes()
	c.remove()
	w.wantUnaffected("after the removal")
	stays.wantUnaffected("after the removal")
	if now := c.volumes(); now != retained {
		c.t.Errorf("%d volumes after the removal, %d before", now, retained)
	}

	// Its containers end, and nobody unmounts.
	c.kubectl("delete", "pod", w.name, "--wait=false")
	c.eventually("the pod ends", func() error {
		if s := c.status(w.name); s.Status.Phase == "Running" {
			return fmt.Errorf("%+v", s.Status)
		}
		return nil
	})
	if now := c.mountOf(w.uid, "scratch"); now != w.mount {
		c.t.Errorf("the mount of the ended pod is another one: %q", now)
	}

	c.deploy()
	stays.wantUnaffected("after Katbox was deployed again")
	c.kubectl("wait", "--for=delete", "pod/"+w.name, "--timeout", patience.String())
	w.wantRetained()
	c.end(stays.name)
	stays.wantRetained()
	c.wantNoMounts()
}
