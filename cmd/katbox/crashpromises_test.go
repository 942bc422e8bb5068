package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/story"
	"github.com/katbox/katbox/soak/testbed"
)

// longestWait bounds how long a scene waits for deadlines. Volumes with later ones are
// published again, unpublished and purged.
const longestWait = time.Minute

// goesSoon reports whether a retained volume has a deadline that a scene waits for.
func (s *scene) goesSoon(v *playedVolume) bool {
	return s.op.lifespan() <= longestWait || v.released
}

// checkPromises is called after the daemon has died at any point. It checks the disk,
// starts the daemon again, repeats the kubelet's calls that got no answer, lets every
// deadline pass, and in the end deletes everything.
func (s *scene) checkPromises() {
	s.t.Helper()
	s.tellAll(story.Killed)
	s.look("after the crash")
	s.checkRecords()
	if s.op.mend != nil {
		s.op.mend(s)
	}
	if s.op.reboot {
		s.loseMounts()
	}
	s.restart(min(s.op.lifespan(), shortly))
	s.look("after a restart")
	if s.op.restarted != nil {
		s.op.restarted(s)
	}
	if s.op.reboot {
		// The kubelet takes its time: a missing mount is no reason to delete.
		s.passDeadline()
		s.look("before the kubelet comes back")
	}
	s.repeatCalls()
	s.passDeadline()
	s.look("with all deadlines over")
	s.awaitDeadlines()
	s.kill()
	s.tellAll(story.Killed)
	s.restart(min(s.op.lifespan(), shortly))
	s.endEverything()
	s.checkNothingLeft()
}

// restart starts a daemon that dies at no point.
func (s *scene) restart(lifespan time.Duration) {
	s.t.Helper()
	s.runOn("")
	if s.op.kernel == oldKernel {
		s.runOn(oldKernel)
	}
	s.flags[1] = lifespan.String()
	for _, v := range s.volumes {
		if v.vanished { // the daemon notices it, if it has not
			s.tellUnpublish(v)
		}
	}
	s.start()
	s.serves()
	s.tellAll(story.Ready)
}

// loseMounts does what a reboot does. The kubelet publishes again after it.
func (s *scene) loseMounts() {
	s.t.Helper()
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(s.dir))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m.Mountpoint, unix.UMOUNT_NOFOLLOW); err != nil {
			s.t.Fatal(err)
		}
	}
	s.tellAll(story.Rebooted)
	for _, v := range s.volumes {
		v.answered = v.answered && !v.published
	}
}

// repeatCalls makes each call again that got no answer, and every publish, as the kubelet
// does after its own restart.
func (s *scene) repeatCalls() {
	s.t.Helper()
	for _, v := range s.volumes {
		switch {
		case v.published:
			s.must(repeated(func() error { return s.publishVolume(v) }))
			if v.story.Markers() == 0 {
				s.writeFiles(v)
			}
		case !v.answered:
			s.must(repeated(func() error { return s.unpublishVolume(v) }))
		}
		s.decideAgain(v)
	}
	s.look("after the calls were repeated")
}

// awaitDeadlines waits until retained volumes are gone.
func (s *scene) awaitDeadlines() {
	s.t.Helper()
	for _, v := range s.volumes {
		if v.published || v.attach != nil || s.isAttached(v) || !s.goesSoon(v) {
			continue
		}
		s.eventually("the volume of pod "+v.pod+" is gone", s.gone(v.pod, v.id))
		s.lookAtData(v)
	}
	s.judge("when the deadlines were over")
}

// endEverything ends all pods, purges their volumes, and waits until nothing of them is left.
func (s *scene) endEverything() {
	s.t.Helper()
	s.look("after another crash")
	for _, v := range slices.Backward(s.volumes) { // what is attached cannot be purged
		if !v.published && (v.attach != nil || s.goesSoon(v)) {
			continue
		}
		s.makeTargetParent(v)
		s.must(repeated(func() error { return s.publishVolume(v) }))
		s.look("published again at the end")
		s.must(repeated(func() error { return s.unpublishVolume(v) }))
		if err := purge("")(s, v); !isGone(err) {
			s.must(err)
		}
	}
	s.eventually("the working directory is empty", func() bool { return len(s.leftInWorkdir()) == 0 })
}

// leftInWorkdir returns what is left of volumes.
func (s *scene) leftInWorkdir() []string {
	s.t.Helper()
	var left []string
	for _, dir := range []string{s.workdir(), filepath.Join(s.workdir(), ".trash")} {
		entries, err := testbed.ReadDirUnforked(dir)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if dir != s.workdir() || !strings.HasPrefix(name, ".") && name != legacyFile && name != filepath.Base(s.foreign()) {
				left = append(left, filepath.Join(dir, name))
			}
		}
	}
	return left
}

// checkNothingLeft stops the daemon and looks at what it leaves.
func (s *scene) checkNothingLeft() {
	s.t.Helper()
	// The records of volumes that are gone may still be there; a stop waits for that.
	if code := s.signal(syscall.SIGTERM); code != 0 {
		s.t.Errorf("exit code %d after SIGTERM", code)
	}
	s.checkLog()
	if known, _ := s.records(nil); len(known) > 0 {
		s.t.Errorf("records are left: %v", known)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(s.dir))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range mounts {
		if !s.op.fileSystem && s.op.quotas == "" || m.Mountpoint != s.workdir() {
			s.t.Errorf("still mounted: %s", m.Mountpoint)
		}
	}
	s.look("at the end")
	s.tellAll(story.Ended)
	s.judge("at the end")
}
