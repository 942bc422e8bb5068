package arrays

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestLostSession: a session that is lost under a mount is reported and made again; calls and stats say what is
// wrong, and the volume can be taken back and staged anew.
func TestLostSession(t *testing.T) {
	for _, id := range kinds[1:] {
		t.Run(id, func(t *testing.T) {
			inWorld(t, func(h *harness) {
				h.must(h.stage(id))
				h.must(h.publish(id, "a"))
				h.locked(func() { h.secret = "rotated" })
				h.lose(staging(id).Attachment.Target)
				for name, err := range map[string]error{"stage": h.stage(id), "publish": h.publish(id, "b")} {
					if !errors.Is(err, volume.ErrUnavailable) {
						h.Errorf("%s: %v", name, err)
					}
				}
				if s, err := stats(h, id, "a"); err != nil || !s.Abnormal || s.Condition == "" {
					h.Errorf("stats: %+v, %v", s, err)
				}
				h.pass(time.Minute)
				if h.sessions[staging(id).Attachment.Target] == nil || !h.reports[id+".node"] {
					h.Errorf("not logged in again, reports %v", h.reports)
				}
				if s, err := stats(h, id, "a"); err != nil || !s.Abnormal {
					h.Errorf("stats with a new session: %+v, %v", s, err)
				}
				h.must(h.unpublish(id, "a"))
				h.must(h.stage(id))
				h.must(h.publish(id, "a"))
				if s, err := stats(h, id, "a"); err != nil || s.Abnormal {
					h.Errorf("stats: %+v, %v", s, err)
				}
				h.must(h.unpublish(id, "a"))
				h.must(h.unstage(id))
				h.pass(time.Minute)
				h.clean()
			})
		})
	}
}

// TestDownSession: what is staged stays, is reported as Disconnected, and follows the array to another address.
func TestDownSession(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.must(h.publish("ext4", "a"))
		h.must(h.stage("xfs"))
		h.pass(time.Minute)
		h.set(targetA, true)
		h.pass(time.Minute)
		if h.reports["ext4.node"] || !h.reports["xfs.node"] {
			h.Errorf("reports %v", h.reports)
		}
		if s, err := stats(h, "ext4", "a"); err != nil || !s.Abnormal {
			h.Errorf("stats: %+v, %v", s, err)
		}
		if err := h.stage("block"); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("stage beside it: %v", err)
		}
		h.set(targetA, false)
		h.mu.Lock()
		h.sessions[targetA].up = false // open-iscsi knows the old address only
		h.portals[targetA] = "10.0.0.2"
		h.mu.Unlock()
		h.pass(10 * time.Minute)
		if !h.reports["ext4.node"] || h.sessions[targetA].address != "10.0.0.2" {
			h.Errorf("reports %v, session at %s", h.reports, h.sessions[targetA].address)
		}
		// The disk of what is mounted stays behind the session that is down.
		if s, err := stats(h, "ext4", "a"); err != nil || !s.Abnormal {
			h.Errorf("stats: %+v, %v", s, err)
		}
		h.must(h.unpublish("ext4", "a"))
		h.must(h.unstage("ext4"))
		h.must(h.stage("ext4"))
		h.must(h.publish("ext4", "a"))
		if s, err := stats(h, "ext4", "a"); err != nil || s.Abnormal {
			h.Errorf("stats: %+v, %v", s, err)
		}
		h.must(h.stage("block"))
	})
}

// TestAPIServerAway: what does not need it goes on, and reports come later.
func TestAPIServerAway(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.pass(time.Minute)
		h.mu.Lock()
		h.apiDown = true
		h.reports = map[string]bool{}
		h.mu.Unlock()
		h.restart(true)
		h.must(h.stage("ext4"))
		h.must(h.stage("block")) // the session is there
		h.must(h.stage("nfs"))
		if err := h.stage("xfs"); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("a login without its secret: %v", err)
		}
		h.must(h.unstage("block"))
		h.pass(time.Hour)
		h.locked(func() { h.apiDown = false })
		h.pass(time.Minute)
		if !h.reports["ext4.node"] || h.reports["block.node"] {
			h.Errorf("reports %v", h.reports)
		}
		h.must(h.stage("xfs"))
	})
}

// TestLoginsAreShared: volumes of a target wait for one login, and the node logs out after the last one.
func TestLoginsAreShared(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.set(targetA, true)
		done := make(chan error, 2)
		for _, id := range []string{"ext4", "block"} {
			go func() { done <- h.stage(id) }()
		}
		synctest.Wait()
		if h.logins != 1 {
			h.Errorf("%d logins, want 1", h.logins)
		}
		for range 2 {
			if err := <-done; !errors.Is(err, volume.ErrUnavailable) {
				h.Error(err)
			}
		}
		h.set(targetA, false)
		h.pass(time.Minute)
		h.must(h.stage("ext4"))
		h.must(h.stage("block"))
		h.must(h.unstage("ext4"))
		if h.sessions[targetA] == nil {
			h.Error("logged out under another volume")
		}
		h.must(h.unstage("block"))
		h.clean()
	})
}

// TestRotatedSecret: a session that went down, and for which open-iscsi has an old secret, is made anew.
func TestRotatedSecret(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.locked(func() { h.secret, h.sessions[targetA].up = "rotated", false })
		h.pass(time.Minute)
		up := false
		h.locked(func() { up = h.sessions[targetA].up })
		if !up {
			h.Error("the session is still down")
		}
	})
}

// TestMovedBeforeTheLogin: the array may have another address than when the volume was attached.
func TestMovedBeforeTheLogin(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.portals[targetA] = "10.0.0.2:3260" })
		if err := h.stage("ext4"); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("stage while the old address is tried: %v", err)
		}
		h.pass(time.Minute)
		h.must(h.stage("ext4"))
		if h.logins != 2 {
			h.Errorf("%d logins, want 2", h.logins)
		}
	})
}

// TestFiguresAndReports: they follow what changes, and nothing is reported twice for nothing.
func TestFiguresAndReports(t *testing.T) {
	inWorld(t, func(h *harness) {
		want := func(want string) {
			h.Helper()
			synctest.Wait()
			if got := h.figures.String(); got != want {
				h.Errorf("%s, want %s", got, want)
			}
		}
		for _, id := range kinds {
			h.must(h.stage(id))
		}
		want("staged map[iscsi:4 nfs:1], sessions up 2, down 0, late 0")
		h.pass(time.Minute)
		reported := h.reported
		h.pass(time.Hour)
		if h.reported != reported {
			h.Errorf("%d reports of nothing new", h.reported-reported)
		}
		h.must(h.publish("nfs", "a"))
		h.set(targetB, true)
		h.set(nas, true)
		if _, err := stats(h, "nfs", "a"); !errors.Is(err, volume.ErrUnavailable) {
			h.Error(err)
		}
		h.pass(time.Minute)
		want("staged map[iscsi:4 nfs:1], sessions up 1, down 1, late 1")
		h.set(targetB, false)
		h.set(nas, false)
		h.pass(time.Hour)
		want("staged map[iscsi:4 nfs:1], sessions up 2, down 0, late 0")
		h.must(h.unpublish("nfs", "a"))
		for _, id := range kinds {
			h.must(h.unstage(id))
		}
		want("staged map[iscsi:0 nfs:0], sessions up 0, down 0, late 0")
	})
}

// TestSessionIsKeptForAVolumeWithoutDisk: a volume that is still being staged needs the session too.
func TestSessionIsKeptForAVolumeWithoutDisk(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.locked(func() { delete(h.luns[targetA], len("block")) })
		if err := h.stage("block"); !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("stage of what is not attached: %v", err)
		}
		h.must(h.unstage("ext4"))
		if h.sessions[targetA] == nil {
			h.Error("logged out under a volume that is being staged")
		}
		h.must(h.unstage("block"))
		h.clean()
	})
}

// TestUnstageWaitsForALogin: it is not refused, because the volume that is unstaged does nothing.
func TestUnstageWaitsForALogin(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.must(h.stage("block"))
		h.set(targetA, true)
		h.lose(targetA)
		staged := make(chan error, 1)
		go func() { staged <- h.stage("ext4") }()
		h.pass(9 * time.Second)
		if err := h.unstage("block"); errors.Is(err, volume.ErrBusy) {
			h.Error(err)
		}
		if err := <-staged; !errors.Is(err, volume.ErrUnavailable) {
			h.Errorf("stage without an array: %v", err)
		}
		h.pass(time.Minute)
		h.must(h.unstage("block"))
		h.must(h.unstage("ext4"))
		h.pass(time.Minute)
		h.clean()
	})
}

// TestRestartKeepsTheWatch: a new daemon looks after the sessions of what an earlier one has staged.
func TestRestartKeepsTheWatch(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.restart(true)
		h.lose(targetA)
		h.pass(time.Minute)
		if h.sessions[targetA] == nil {
			h.Error("not logged in again")
		}
	})
}

// TestBootInMkfs: what a crash of the node has left of a file system is made anew.
func TestBootInMkfs(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() {
			h.fail = func(call string) error {
				if call == "format ends" {
					return errKilled
				}
				return nil
			}
		})
		if err := h.stage("ext4"); err == nil {
			h.Error("staged without a file system")
		}
		h.end(h.node, true)
		h.locked(func() { h.fail, h.mounts, h.devices, h.sessions = nil, nil, nil, map[string]*sessionState{} })
		h.node = h.start()
		h.pass(time.Minute)
		if h.logins != 1 {
			h.Error("logged in for nothing")
		}
		h.locked(func() {
			h.fail = func(call string) error {
				if call == "reformat" {
					return errKilled
				}
				return nil
			}
		})
		if err := h.stage("ext4"); err == nil {
			h.Error("staged without a file system")
		}
		h.must(h.unstage("ext4"))
		h.locked(func() { h.fail = nil })
		h.must(h.stage("ext4"))
		h.must(h.unstage("ext4"))
		h.pass(time.Minute)
		h.clean()
		if len(h.records) > 0 {
			h.Errorf("left: %v", h.records)
		}
	})
}

// TestNoteNeedsNoSession: what is remembered of a volume that is not staged keeps no session.
func TestNoteNeedsNoSession(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("block"))
		note := recordOf(staging("ext4"))
		note.Path, note.Formatting = "", true
		h.locked(func() { h.records["ext4"] = note })
		h.restart(true)
		h.must(h.unstage("block"))
		h.clean()
		// A read-only volume gets no file system, and what is half made stays.
		h.locked(func() { h.lunOf("ext4").content = "partial" })
		s := staging("ext4")
		s.ReadOnly = true
		if err := h.node.Stage(h.bounded(), s); err == nil || h.lunOf("ext4").formats != 0 {
			h.Errorf("stage of what is half made, read-only: %v", err)
		}
		s = staging("xfs")
		s.ReadOnly = true
		if err := h.node.Stage(h.bounded(), s); !errors.Is(err, volume.ErrUncertain) || h.lunOf("xfs").formats != 0 {
			h.Errorf("stage of what is empty, read-only: %v", err)
		}
	})
}

// TestBoot: after the node was booted, nothing is left of what was staged, and its records go. Nothing logs in.
func TestBoot(t *testing.T) {
	inWorld(t, func(h *harness) {
		for _, id := range kinds {
			h.must(h.stage(id))
		}
		h.end(h.node, true)
		h.mounts, h.devices, h.sessions, h.paths = nil, nil, map[string]*sessionState{}, map[string]bool{}
		logins := h.logins
		h.node = h.start()
		h.pass(time.Hour)
		h.clean()
		if h.logins != logins {
			h.Errorf("%d logins for nothing", h.logins-logins)
		}
		for _, id := range kinds {
			h.must(h.stage(id))
		}
	})
}
