package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/volume"
)

// longestWait bounds how long a scene waits for deadlines. Volumes with later ones are
// published again, unpublished and purged.
const longestWait = time.Minute

// goesSoon reports whether a retained volume has a deadline that a scene waits for.
func (s *scene) goesSoon(v *playedVolume) bool {
	return s.op.lifespan() <= longestWait || v.holdKnown && v.hold == volume.Released
}

// checkPromises is called after the daemon has died at any point. It checks the disk,
// starts the daemon again, repeats the kubelet's calls that got no answer, lets every
// deadline pass, and in the end deletes everything.
func (s *scene) checkPromises() {
	s.t.Helper()
	s.checkMounts("after the crash")
	s.checkData("after the crash")
	s.checkRecords()
	if s.op.mend != nil {
		s.op.mend(s)
	}
	if s.op.reboot {
		s.loseMounts()
	}
	s.restart(min(s.op.lifespan(), time.Second+time.Second/2))
	s.checkMounts("after a restart")
	s.checkData("after a restart")
	if s.op.reboot {
		// The kubelet takes its time: a missing mount is no reason to delete.
		s.passDeadline()
		s.checkData("before the kubelet comes back")
	}
	s.repeatCalls()
	s.passDeadline()
	s.checkData("with all deadlines over")
	s.awaitDeadlines()
	s.kill()
	s.restart(min(s.op.lifespan(), time.Second+time.Second/2))
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
	s.start()
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
	for _, v := range s.volumes {
		v.answered = v.answered && !v.published
	}
}

// checkMounts checks that every volume that was reported as published is mounted, with the
// pod's files.
func (s *scene) checkMounts(when string) {
	s.t.Helper()
	for _, v := range s.volumes {
		if !v.published || !v.answered {
			continue
		}
		if !s.mounted(v.target) {
			s.t.Errorf("%s: volume %s of pod %s is not mounted any more", when, v.id, v.pod)
			continue
		}
		if problem := wrongFile(v, v.target); v.written && problem != "" {
			s.t.Errorf("%s: pod %s sees in volume %s: %s", when, v.pod, v.id, problem)
		}
		info, err := os.Stat(v.target)
		if err != nil {
			s.t.Fatal(err)
		}
		if info.Mode().Perm() != 0o777 {
			s.t.Errorf("%s: pod %s sees volume %s with mode %v, want 0777", when, v.pod, v.id, info.Mode())
		}
		err = writeUnforked(filepath.Join(v.target, ".try"), nil)
		if v.readOnly != errors.Is(err, syscall.EROFS) {
			s.t.Errorf("%s: pod %s writes to volume %s, read-only %t: %v", when, v.pod, v.id, v.readOnly, err)
		}
	}
}

// checkData checks that data that may not be deleted yet is there, and that deleted data is
// wholly gone.
func (s *scene) checkData(when string) {
	s.t.Helper()
	for _, v := range s.volumes {
		problem := wrongFile(v, s.dataOf(v))
		there := exists(s.dataOf(v))
		if v.attach != nil && exists(s.data(v.pod, v.id)) {
			s.t.Errorf("%s: volume %s of pod %s has a data directory beside that of volume %s", when, v.id, v.pod, v.attach.id)
		}
		switch {
		case !v.written, problem == "":
		case !s.mayGo(v):
			s.t.Errorf("%s: volume %s of pod %s, which is not to go yet: %s", when, v.id, v.pod, problem)
		case there && !s.op.inPlace:
			s.t.Errorf("%s: volume %s of pod %s is deleted in part: %s", when, v.id, v.pod, problem)
		}
	}
	if got, err := readUnforked(filepath.Join(s.outside(), "precious")); err != nil || string(got) != "precious" {
		s.t.Errorf("%s: a file outside: %q, %v", when, got, err)
	}
	if got, err := readUnforked(s.foreign()); !s.op.empty && (err != nil || string(got) != "notes") {
		s.t.Errorf("%s: a file of somebody else: %q, %v", when, got, err)
	}
}

// wrongFile returns what is wrong with a volume's files in a directory.
func wrongFile(v *playedVolume, dir string) string {
	for path, want := range v.files {
		got, err := readUnforked(filepath.Join(dir, path))
		if link, ok := strings.CutPrefix(want, "-> "); ok {
			var to string
			to, err = os.Readlink(filepath.Join(dir, path))
			got, want = []byte(to), link
		}
		if err != nil {
			return err.Error()
		}
		if string(got) != want {
			return path + " has other content"
		}
	}
	return ""
}

// repeatCalls makes each call again that got no answer, and every publish, as the kubelet
// does after its own restart.
func (s *scene) repeatCalls() {
	s.t.Helper()
	for _, v := range s.volumes {
		switch {
		case v.published:
			s.must(repeated(func() error { return s.publishVolume(v) }))
			if !v.written {
				s.writeFiles(v)
			}
		case !v.answered:
			s.must(repeated(func() error { return s.unpublishVolume(v) }))
			if s.mounted(v.target) || exists(v.target) {
				s.t.Errorf("volume %s of pod %s still has its target", v.id, v.pod)
			}
		}
		s.decideAgain(v)
	}
	s.checkMounts("after the calls were repeated")
}

// awaitDeadlines waits until retained volumes are gone, and checks that none goes early.
func (s *scene) awaitDeadlines() {
	s.t.Helper()
	for _, v := range s.volumes {
		if v.published || v.attach != nil || s.isAttached(v) || !s.goesSoon(v) {
			continue
		}
		s.eventually("the volume of pod "+v.pod+" is gone", func() bool {
			gone := !exists(s.data(v.pod, v.id))
			if now := time.Now(); gone && v.written && !v.pressed && now.Before(v.keptUntil) {
				s.t.Fatalf("the volume of pod %s went %s early", v.pod, v.keptUntil.Sub(now))
			}
			return gone
		})
	}
}

// endEverything ends all pods, purges their volumes, and waits until nothing of them is left.
func (s *scene) endEverything() {
	s.t.Helper()
	s.checkData("after another crash")
	for _, v := range slices.Backward(s.volumes) { // what is attached cannot be purged
		if !v.published && (v.attach != nil || s.goesSoon(v)) {
			continue
		}
		s.makeTargetParent(v)
		if !v.published && !exists(s.data(v.pod, v.id)) {
			v.written = false // it may have gone, as checkData has found
		}
		s.must(repeated(func() error { return s.publishVolume(v) }))
		s.checkMounts("published again at the end")
		s.must(repeated(func() error { return s.unpublishVolume(v) }))
		v.pressed = true
		if err := s.admin().Purge(s.asked(), v.id, ""); !isGone(err) {
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
		entries, err := readDirUnforked(dir)
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
	s.checkData("at the end")
}
