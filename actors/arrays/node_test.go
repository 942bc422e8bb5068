package arrays

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// TestVolumeComesAndGoes: each kind of volume is staged, published to two pods and taken back, every call
// twice, and nothing is left.
func TestVolumeComesAndGoes(t *testing.T) {
	inWorld(t, func(h *harness) {
		twice := func(call func() error) {
			h.Helper()
			h.must(call())
			h.must(call())
		}
		for _, id := range kinds {
			twice(func() error { return h.stage(id) })
			for _, pod := range []string{"a", "b"} {
				twice(func() error { return h.publish(id, pod) })
				if s, err := stats(h, id, pod); err != nil || s.Abnormal || s.Space.Total.Bytes == 0 {
					h.Errorf("stats of %s: %+v, %v", id, s, err)
				}
			}
		}
		h.pass(time.Minute)
		if len(h.reports) != 4 || !h.reports["ext4.node"] || h.lunOf("ext4").formats != 1 || h.logins != 2 {
			h.Errorf("reports %v, %d logins", h.reports, h.logins)
		}
		for _, id := range kinds {
			if err := h.unstage(id); !errors.Is(err, volume.ErrBusy) {
				h.Errorf("unstage of %s, which is published: %v", id, err)
			}
			for _, pod := range []string{"a", "b"} {
				twice(func() error { return h.unpublish(id, pod) })
			}
			twice(func() error { return h.unstage(id) })
		}
		h.pass(time.Minute)
		h.clean()
		if h.reports["ext4.node"] {
			h.Error("an unstaged volume is reported as Active")
		}
	})
}

// TestFewReadingsOfTheMountTable: with thousands of mounts it costs more than all else.
func TestFewReadingsOfTheMountTable(t *testing.T) {
	inWorld(t, func(h *harness) {
		reads := func(call func() error) (n int) {
			h.Helper()
			h.locked(func() { h.readings = 0 })
			h.must(call())
			h.locked(func() { n = h.readings })
			return n
		}
		for id, want := range map[string]struct{ stage, publish int }{
			// The table alone says which export is mounted, and whether the disk is for other pods.
			"nfs": {0, 1}, "ext4": {1, 0}, "xfs": {1, 0}, "block": {0, 0},
		} {
			if n := reads(func() error { return h.stage(id) }); n != want.stage {
				h.Errorf("stage of %s reads it %d times, want %d", id, n, want.stage)
			}
			if n := reads(func() error { return h.publish(id, "a") }); n != want.publish {
				h.Errorf("publish of %s reads it %d times, want %d", id, n, want.publish)
			}
			h.must(h.unpublish(id, "a"))
			h.must(h.unstage(id))
		}
	})
}

// TestArrayWithSeveralAddresses: the kernel knows the NFS server by another address, which the mount table shows;
// later the volume is attached by that one.
func TestArrayWithSeveralAddresses(t *testing.T) {
	inWorld(t, func(h *harness) {
		server, path, _ := strings.Cut(staging("nfs").Attachment.Export, ":")
		h.shownAs = map[string]string{server: "10.9.9.9"}
		h.must(h.stage("nfs"))
		h.must(h.stage("nfs"))
		h.must(h.publish("nfs", "a"))
		other := staging("nfs")
		other.Attachment.Export = "10.9.9.9:" + path
		h.must(h.node.Stage(h.bounded(), other))
		if err := h.unstage("nfs"); !errors.Is(err, volume.ErrBusy) {
			h.Errorf("unstage of a volume that is published: %v", err)
		}
		h.must(h.unpublish("nfs", "a"))
		h.must(h.unstage("nfs"))
		h.clean()
		other.Attachment.Export += "x"
		h.must(h.stage("nfs"))
		if err := h.node.Stage(h.bounded(), other); !errors.Is(err, volume.ErrConflict) {
			h.Errorf("another export: %v", err)
		}
		h.must(h.unstage("nfs"))
	})
}

// TestOtherParametersAreRefused: what is staged stays as it is.
func TestOtherParametersAreRefused(t *testing.T) {
	inWorld(t, func(h *harness) {
		for _, id := range kinds {
			h.must(h.stage(id))
			h.must(h.publish(id, "a"))
			other := staging(id)
			other.ReadOnly = true
			if err := h.node.Stage(h.bounded(), other); !errors.Is(err, volume.ErrConflict) {
				h.Errorf("%s read-only: %v", id, err)
			}
			moved := staging(id)
			moved.Attachment.Portal = "10.0.0.9"
			h.must(h.node.Stage(h.bounded(), moved))
			p := publication(id, "a")
			p.ReadOnly = true
			if err := h.node.Publish(h.bounded(), p); !errors.Is(err, volume.ErrConflict) {
				h.Errorf("%s published read-only: %v", id, err)
			}
			p = publication(id, "b")
			p.OneTarget = true
			if err := h.node.Publish(h.bounded(), p); !errors.Is(err, volume.ErrOtherTarget) {
				h.Errorf("second target of %s: %v", id, err)
			}
			p.Target = podPath(id, "a")
			h.must(h.node.Publish(h.bounded(), p))
		}
		if err := h.publish("none", "a"); !errors.Is(err, volume.ErrNotStaged) {
			h.Errorf("publish of what is not staged: %v", err)
		}
	})
}

// TestHungServer: a server that does not answer makes the calls for its volumes Unavailable after a while, and
// no others; they go on when it is back.
func TestHungServer(t *testing.T) {
	for _, id := range kinds {
		t.Run(id, func(t *testing.T) {
			inWorld(t, func(h *harness) {
				server := nas
				if id != "nfs" {
					server = staging(id).Attachment.Target
				}
				h.set(server, true)
				began := time.Now()
				err := h.stage(id)
				took := time.Since(began)
				if !errors.Is(err, volume.ErrUnavailable) || took > 11*time.Second || !strings.Contains(err.Error(), "since") {
					h.Errorf("after %v: %v", took, err)
				}
				if id == "nfs" && !strings.Contains(err.Error(), "NFS server nas") {
					h.Errorf("it does not say who is waited for: %v", err)
				}
				other := "nfs"
				if id == "nfs" {
					other = "xfs"
				} else if server == targetA {
					other = "xfs"
				}
				h.must(h.stage(other))
				if err := h.unstage(id); err == nil && id == "nfs" {
					h.Error("unstaged while it is being staged")
				}
				h.set(server, false)
				h.pass(time.Minute)
				h.must(h.stage(id))
				h.must(h.unstage(id))
				h.must(h.unstage(other))
				h.pass(time.Minute)
				h.clean()
			})
		})
	}
}

// TestHungStatsAreOne: however often a volume is measured that does not answer, one goroutine waits.
func TestHungStatsAreOne(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("nfs"))
		h.must(h.publish("nfs", "a"))
		h.must(h.publish("nfs", "b"))
		h.set(nas, true)
		for range 20 {
			for _, pod := range []string{"a", "b"} {
				if _, err := stats(h, "nfs", pod); !errors.Is(err, volume.ErrUnavailable) {
					h.Errorf("stats: %v", err)
				}
			}
		}
		synctest.Wait()
		if got := h.waiting.Load(); got != 1 {
			h.Errorf("%d calls wait, want 1", got)
		}
		h.set(nas, false)
		h.pass(time.Second)
		if _, err := stats(h, "nfs", "b"); err != nil {
			h.Error(err)
		}
	})
}

// TestPodsTakeTurns: pods that share a volume and start or end together wait for each other, and get no errors.
func TestPodsTakeTurns(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("nfs"))
		for _, call := range []func(id, pod string) error{h.publish, h.unpublish} {
			h.set(nas, true)
			ended := make(chan error, 3)
			for _, pod := range []string{"a", "b", "c"} {
				go func() { ended <- call("nfs", pod) }()
			}
			h.pass(time.Second)
			h.set(nas, false)
			for range 3 {
				h.must(<-ended)
			}
		}
	})
}

// TestOtherVolumeStagedThere: what another volume's disk shows at the staging path is left alone.
func TestOtherVolumeStagedThere(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("xfs"))
		h.locked(func() {
			m := h.mounts[0]
			m.Target = "/staging/ext4"
			h.mounts = append(h.mounts, m)
		})
		if err := h.stage("ext4"); !errors.Is(err, volume.ErrForeignMount) {
			h.Errorf("stage: %v", err)
		}
	})
}

// TestUnstageOfSomethingElse: a volume that is staged by its record, and of which the node shows something else at the
// staging path, is not reported as unstaged: what is mounted there may be in use, and would be detached.
func TestUnstageOfSomethingElse(t *testing.T) {
	for _, id := range kinds {
		t.Run(id, func(t *testing.T) {
			inWorld(t, func(h *harness) {
				h.must(h.stage(id))
				own := attach.Mount{}
				h.locked(func() {
					own = h.mounts[0]
					h.mounts[0] = attach.Mount{Target: own.Target, Root: "/", FSType: "ext4", Source: "/dev/vda1", Device: 7}
				})
				if err := h.unstage(id); !errors.Is(err, volume.ErrForeignMount) {
					h.Errorf("unstage: %v", err)
				}
				h.locked(func() {
					if len(h.mounts) != 1 || len(h.records) != 1 {
						h.Errorf("%d mounts, %d records", len(h.mounts), len(h.records))
					}
					h.mounts[0] = own
				})
				h.must(h.unstage(id))
				h.pass(time.Minute)
				h.clean()
			})
		})
	}
}

// TestOlderDaemon: what was staged without a record grows, is measured, unpublished and unstaged.
func TestOlderDaemon(t *testing.T) {
	for _, id := range kinds {
		t.Run(id, func(t *testing.T) {
			inWorld(t, func(h *harness) {
				h.must(h.stage(id))
				h.must(h.publish(id, "a"))
				h.mu.Lock()
				delete(h.records, id)
				h.mu.Unlock()
				h.restart(false)
				if id != "nfs" {
					h.locked(func() { h.lunOf(id).size = 2 << 30 })
				}
				e := pools.NodeExpansion{Volume: id, Path: podPath(id, "a"), Block: id == "block", Required: 2 << 30}
				if size, err := h.node.Expand(h.bounded(), e); size != 2<<30 || err != nil {
					h.Errorf("expanded to %d: %v", size, err)
				}
				if s, err := stats(h, id, "a"); err != nil || s.Abnormal {
					h.Errorf("stats: %+v, %v", s, err)
				}
				if err := h.unstage(id); !errors.Is(err, volume.ErrBusy) {
					h.Errorf("unstage while published: %v", err)
				}
				h.must(h.stage(id))
				h.mu.Lock()
				delete(h.records, id)
				h.mu.Unlock()
				h.must(h.unpublish(id, "a"))
				h.must(h.unstage(id))
				h.pass(time.Minute)
				h.clean()
			})
		})
	}
}

// TestOlderDaemonKeepsItsSession: a volume that no record tells of keeps the session that it shares.
func TestOlderDaemonKeepsItsSession(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.must(h.stage("block"))
		h.locked(func() { delete(h.records, "ext4") })
		h.restart(false)
		h.must(h.unstage("block"))
		h.must(h.unstage("ext4"))
		h.pass(time.Minute)
		h.clean()
	})
}

// TestStagingMountGone: a volume that pods have is not unstaged, although a person has unmounted its staging path;
// it can be staged again, also where nothing tells that it was.
func TestStagingMountGone(t *testing.T) {
	for _, id := range kinds {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lost=%t", id, lost), func(t *testing.T) {
				inWorld(t, func(h *harness) { stagingMountGone(h, id, lost) })
			})
		}
	}
}

func stagingMountGone(h *harness, id string, lost bool) {
	h.must(h.stage(id))
	h.must(h.publish(id, "a"))
	h.locked(func() {
		h.mounts = h.mounts[1:]
		if lost {
			delete(h.records, id)
		}
	})
	if !lost {
		if err := h.unstage(id); !errors.Is(err, volume.ErrBusy) {
			h.Errorf("unstage while published: %v", err)
		}
	}
	if err := h.publish(id, "b"); !errors.Is(err, volume.ErrNotStaged) {
		h.Errorf("publish: %v", err)
	}
	if id == "number" && lost { // nothing tells that the disk is the volume's which a pod has: it may be another one's
		if err := h.stage(id); !errors.Is(err, volume.ErrUncertain) {
			h.Errorf("stage: %v", err)
		}
		h.must(h.unpublish(id, "a"))
	}
	h.must(h.stage(id))
	h.must(h.publish(id, "b"))
	h.must(h.unpublish(id, "a"))
	h.must(h.unpublish(id, "b"))
	h.must(h.unstage(id))
	h.clean()
}

// TestCopiesOfTheHost: mounts below the host's root directory are copies, which use nothing.
func TestCopiesOfTheHost(t *testing.T) {
	inWorld(t, func(h *harness) {
		for _, id := range kinds {
			h.must(h.stage(id))
			h.must(h.publish(id, "a"))
			h.must(h.unpublish(id, "a"))
			h.locked(func() {
				m := h.mounts[0]
				m.Target = "/host" + m.Target
				h.copies = []attach.Mount{m}
			})
			p := publication(id, "b")
			p.OneTarget = true
			h.must(h.node.Publish(h.bounded(), p))
			h.must(h.unpublish(id, "b"))
			h.must(h.unstage(id))
		}
		h.clean()
	})
}

// TestRefusedForGood: of a stage that will never succeed nothing is left, because no unstage may follow.
func TestRefusedForGood(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() {
			h.fail = func(call string) error {
				if strings.HasPrefix(call, "mount") {
					return volume.Invalid("mount_flags", "has something odd")
				}
				return nil
			}
		})
		for _, id := range []string{"nfs", "ext4"} {
			if err := h.stage(id); !errors.Is(err, volume.ErrInvalid) {
				h.Errorf("stage of %s: %v", id, err)
			}
		}
		h.clean()
	})
}

// TestAnotherVolumesData: a LUN with another serial number, and a disk with data, are left alone.
func TestAnotherVolumesData(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.lunOf("ext4").serial, h.lunOf("xfs").content = "another", "data" })
		for _, id := range []string{"ext4", "xfs"} {
			if err := h.stage(id); err == nil || errors.Is(err, volume.ErrFailed) {
				h.Errorf("stage of %s: %v", id, err)
			}
		}
		h.locked(func() { h.lunOf("xfs").content = "ext4" })
		if err := h.stage("xfs"); !errors.Is(err, volume.ErrUncertain) || h.lunOf("xfs").formats != 0 {
			h.Errorf("stage of xfs, where ext4 is: %v", err)
		}
		for _, id := range []string{"ext4", "xfs"} {
			h.must(h.unstage(id))
		}
		h.clean()
	})
}

// TestReadOnlyAfterErrors: a file system that the kernel has made read-only is no other staging.
func TestReadOnlyAfterErrors(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.locked(func() { h.mounts[0].ReadOnly = true })
		if err := h.stage("ext4"); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("stage: %v", err)
		}
		h.must(h.unstage("ext4"))
		h.must(h.stage("ext4"))
	})
}

// TestForeignMounts are neither covered nor taken away.
func TestForeignMounts(t *testing.T) {
	inWorld(t, func(h *harness) {
		for _, path := range []string{"/staging/nfs", "/staging/ext4", podPath("xfs", "a")} {
			h.mounts = append(h.mounts, attach.Mount{Target: path, Root: "/", FSType: "ext4", Source: "/dev/vda1", Device: 7})
		}
		h.must(h.stage("xfs"))
		for name, err := range map[string]error{
			"stage nfs": h.stage("nfs"), "stage ext4": h.stage("ext4"), "publish": h.publish("xfs", "a"), "unpublish": h.unpublish("xfs", "a"),
			"unstage": h.unstage("ext4"),
		} {
			if !errors.Is(err, volume.ErrForeignMount) {
				h.Errorf("%s: %v", name, err)
			}
		}
		h.locked(func() { h.mounts[len(h.mounts)-1].Device = 7 })
		if err := h.publish("xfs", "b"); !errors.Is(err, volume.ErrNotStaged) {
			h.Errorf("publish of what is at the staging path: %v", err)
		}
		if len(h.mounts) != 4 {
			h.Errorf("%v are mounted", h.mounts)
		}
	})
}

// TestExpand: a file system grows with its disk, and what the array has not enlarged yet is not told to be large.
func TestExpand(t *testing.T) {
	inWorld(t, func(h *harness) {
		for _, id := range kinds {
			h.must(h.stage(id))
			h.must(h.publish(id, "a"))
			e := pools.NodeExpansion{Volume: id, Path: podPath(id, "a"), Block: id == "block", Required: 2 << 30}
			if id != "nfs" {
				if _, err := h.node.Expand(h.bounded(), e); !errors.Is(err, volume.ErrUnavailable) {
					h.Errorf("%s, too small on the array: %v", id, err)
				}
				h.locked(func() { h.lunOf(id).size = 2 << 30 })
			}
			if size, err := h.node.Expand(h.bounded(), e); size != 2<<30 || err != nil {
				h.Errorf("%s: %d, %v", id, size, err)
			}
			if id == "ext4" && h.lunOf(id).grown != 2<<30 {
				h.Errorf("%s has %d", id, h.lunOf(id).grown)
			}
		}
	})
}

// TestMorePodsThanWait: a volume that a server keeps from being published has no end of callers. A bounded number of them waits,
// the others are told to try again, and all get the volume once the server is back.
func TestMorePodsThanWait(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("nfs"))
		h.set(nas, true)
		const pods = actors.MaxCallers + 20
		ended := make(chan error, pods)
		for i := range pods {
			go func() { ended <- h.publish("nfs", fmt.Sprint(i)) }()
		}
		synctest.Wait()
		if refused := pods - 1 - actors.MaxCallers; len(ended) != refused {
			t.Errorf("%d of %d calls are refused, want %d", len(ended), pods, refused)
		}
		for len(ended) > 0 {
			if err := <-ended; !errors.Is(err, volume.ErrBusy) {
				t.Error(err)
			}
		}
		h.set(nas, false)
		for range 1 + actors.MaxCallers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		for i := range pods {
			h.must(h.publish("nfs", fmt.Sprint(i)))
			h.must(h.unpublish("nfs", fmt.Sprint(i)))
		}
		h.must(h.unstage("nfs"))
		h.clean()
	})
}
