package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/story"
	"github.com/katbox/katbox/soak/testbed"
)

// Points that operations wait for.
const (
	afterCommit     = "after store.newDatabase/Update"
	afterEntry      = "after store.journal.add/Pwrite"
	afterCompaction = "after store.database.release/Truncate"
)

// crashOperation is something that a daemon does and that a crash may interrupt.
type crashOperation struct {
	name string
	// lives is the lifespan, a short one if it is 0.
	lives time.Duration
	flags []string
	// registers: the daemon registers itself with the kubelet.
	registers bool
	// kernel is the kernel that the daemon runs on.
	kernel fakeKernel
	// empty: there is nothing yet, not even a database.
	empty bool
	// alone: no other volume is retained, so that the test waits for the operation's own
	// deadline.
	alone bool
	// prepare runs before the operation, with the daemon running.
	prepare func(s *scene)
	// stop ends the daemon before the operation; offline runs then.
	stop    syscall.Signal
	offline func(s *scene)
	// do is the operation. Its error counts if the daemon did not end.
	do func(s *scene) error
	// mend runs after the crash, before the restart.
	mend func(s *scene)
	// restarted runs after the restart.
	restarted func(s *scene)
	// reboot: the mounts are lost with the crash.
	reboot bool
	// inPlace: it deletes without a rename, for which there is no room.
	inPlace bool
	// errors are texts that lines of level error in the log may have.
	errors []string
	// certain is how often the operation surely reaches a point, where the daemon may try
	// once more on a slow machine. It is 0 where each time is sure.
	certain int
	// fileSystem: the working directory is on a small file system of its own.
	fileSystem bool
	// quotas is the directory of a file system that the working directory is on; empty for none.
	quotas string
}

// lifespan is short where it is not named. It does not end before the operation begins, on a slow machine neither: the
// operation would not reach the points of a deletion that another run of it has reached.
func (op crashOperation) lifespan() time.Duration {
	switch {
	case op.lives != 0:
		return op.lives
	case op.stop != 0:
		return 10 * time.Second
	}
	return shortly
}

// shortly is how long a volume is retained that the test waits for.
const shortly = time.Second + time.Second/2

// brief is for deadlines that the operation itself waits for.
const brief = 300 * time.Millisecond

// on is the operation on another kernel.
func (op crashOperation) on(k fakeKernel) crashOperation {
	op.name += ", kernel " + string(k)
	op.kernel = k
	return op
}

// thenReboot is the operation with a crash of the whole node.
func (op crashOperation) thenReboot() crashOperation {
	op.name += ", then a reboot"
	op.reboot = true
	return op
}

func crashOperations() []crashOperation {
	restart := crashOperation{name: "start after a kill", stop: syscall.SIGKILL, do: (*scene).startIt}
	publish := crashOperation{name: "publish", do: func(s *scene) error { return s.publishVolume(s.add("new", podFiles())) }}
	publishReadOnly := crashOperation{name: "publish read-only", do: func(s *scene) error {
		v := s.add("new", podFiles())
		v.readOnly = true
		return s.publishVolume(v)
	}}
	unpublish := crashOperation{name: "unpublish", prepare: addLeaving, do: func(s *scene) error { return s.unpublishVolume(s.last()) }}
	// Its own deadline must not come before the crash.
	publishAgain := crashOperation{name: "publish again", lives: time.Hour, alone: true, prepare: addRetained,
		do: func(s *scene) error { return s.publishVolume(s.last()) }}
	expiry := expires(crashOperation{name: "expiry"}, podFiles())
	deepExpiry := expires(crashOperation{name: "expiry of a deep tree"}, deepFiles())

	return append(slices.Concat(crashDecisions(), crashAttachments(), crashLogs()), []crashOperation{
		{name: "first start", empty: true, do: (*scene).startIt},
		restart,
		{name: "start after a stop", stop: syscall.SIGTERM, do: (*scene).startIt},
		{name: "start after a kill, with a registration", registers: true, stop: syscall.SIGKILL, do: (*scene).startIt},
		{name: "start with leftovers in the trash", stop: syscall.SIGKILL, offline: addTrash, do: func(s *scene) error {
			if err := s.startIt(); err != nil {
				return err
			}
			return s.await("the trash is empty", s.trashIsEmpty)
		}},
		{name: "stop", do: (*scene).stopIt},
		{name: "stop with a registration", registers: true, do: (*scene).stopIt},
		{name: "import of the archived Katbox's database", empty: true, offline: addLegacy, do: (*scene).startIt},
		{name: "compaction of the records", lives: time.Hour, alone: true, stop: syscall.SIGTERM, offline: addPeak, do: func(s *scene) error {
			if err := s.startIt(); err != nil {
				return err
			}
			return s.await("compacted", func() bool { return s.met(afterCompaction) == 1 })
		}},
		// The daemon that adopts it after a crash is another one, with this lifespan too.
		{name: "adoption of an orphan", lives: shortly, alone: true, stop: syscall.SIGKILL, offline: addOrphan, do: func(s *scene) error {
			if err := s.startIt(); err != nil {
				return err
			}
			return s.await("adopted", func() bool { return s.met(afterEntry) > 0 })
		}},

		publish,
		publishReadOnly,
		{name: "publish of a pod's second volume", do: func(s *scene) error { return s.publishVolume(s.add("running", podFiles())) }},
		{name: "publish, and its record on the disk", certain: 1, flags: []string{"--record-sync", "100ms"}, do: func(s *scene) error {
			if err := s.publishVolume(s.add("new", podFiles())); err != nil {
				return err
			}
			return s.await("durable", func() bool { return s.met(afterCommit) >= 1 })
		}},
		{name: "publish that waits for the disk", flags: []string{"--record-sync", "0"}, do: publish.do},
		{name: "unpublish that waits for the disk", flags: []string{"--record-sync", "0"}, prepare: addLeaving, do: unpublish.do},
		{name: "start without a journal after a kill", stop: syscall.SIGKILL, offline: func(s *scene) {
			s.flags = append(s.flags, "--record-sync", "0")
		}, do: (*scene).startIt},
		publish.thenReboot(),
		publishAgain,
		publishAgain.thenReboot(),
		{name: "publish repeated", do: func(s *scene) error { return s.publishVolume(s.running) }},
		{name: "publish without the target's parent", errors: []string{"call failed"}, prepare: func(s *scene) {
			s.removeTargetParent(s.add("new", podFiles()))
		}, do: (*scene).publishFails},
		{name: "publish again without the target's parent", lives: time.Hour, alone: true, errors: []string{"call failed"},
			prepare: func(s *scene) {
				addRetained(s)
				s.removeTargetParent(s.last())
			}, do: (*scene).publishFails},
		{name: "publish whose mount fails", errors: []string{"call failed"}, prepare: func(s *scene) {
			s.add("new", podFiles())
			s.makeUnbindable()
		}, do: (*scene).publishFails},
		{name: "publish again whose mount fails", lives: time.Hour, alone: true, errors: []string{"call failed"}, prepare: func(s *scene) {
			addRetained(s)
			s.makeUnbindable()
		}, do: (*scene).publishFails},
		{name: "publish whose mount cannot be made read-only", errors: []string{"call failed"}, kernel: oldRefusingKernel,
			prepare: func(s *scene) {
				s.add("new", podFiles()).readOnly = true
			}, do: (*scene).publishFails},

		unpublish,
		unpublish.thenReboot(),
		{name: "unpublish of a busy volume", certain: 2, errors: []string{"volume is stuck"}, prepare: addLeaving, do: (*scene).unpublishBusy},
		{name: "unpublish of an unknown volume", do: func(s *scene) error {
			addOrphan(s)
			return s.unpublishVolume(s.last())
		}},
		{name: "pod that vanishes", flags: []string{"--orphan-grace", "200ms"}, prepare: addLeaving, do: (*scene).vanish},

		expiry,
		deepExpiry,
		expires(crashOperation{name: "expiry beside another volume of the pod",
			prepare: func(s *scene) { s.addPublished("leaving", podFiles()) }}, podFiles()),
		expires(crashOperation{name: "expiry with no room in the trash", kernel: fullKernel, inPlace: true}, podFiles()),
		{
			name: "eviction under pressure", lives: time.Hour, alone: true, fileSystem: true,
			flags: []string{"--headroom", "0.1", "--pruneinterval", "100ms"}, prepare: addRetained, do: (*scene).press,
			mend: (*scene).relieve,
		},

		restart.on(oldKernel),
		publish.on(oldKernel),
		publishReadOnly.on(oldKernel),
		unpublish.on(oldKernel),
		expiry.on(oldKernel),
		deepExpiry.on(oldKernel),
	}...)
}

// podFiles are the files that most pods write.
func podFiles() map[string]string {
	return map[string]string{"marker": "1", "sub/two": "2", "sub/sub/three": "3", "link": "-> ../../../outside"}
}

// deepFiles are more nested directories than an erasure holds open.
func deepFiles() map[string]string {
	return map[string]string{"marker": "1", strings.Repeat("d/", 70) + "bottom": "2"}
}

func (s *scene) last() *playedVolume { return s.volumes[len(s.volumes)-1] }

func addLeaving(s *scene) { s.addPublished("leaving", podFiles()) }

func addRetained(s *scene) {
	s.t.Helper()
	v := s.addPublished("retained", podFiles())
	s.must(s.unpublishVolume(v))
}

// addOrphan makes a data directory without a record.
func addOrphan(s *scene) {
	s.t.Helper()
	v := s.add("0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2e", podFiles())
	v.answered = true
	v.tell(story.Event{What: story.FoundKept, Lifespan: s.lifespan()})
	s.writeFiles(v)
}

func addTrash(s *scene) {
	s.t.Helper()
	s.write(filepath.Join(s.workdir(), ".trash/ONE/sub/file"), "x")
	s.write(filepath.Join(s.workdir(), ".trash/TWO"), "x")
}

func (s *scene) trashIsEmpty() bool {
	entries, err := testbed.ReadDirUnforked(filepath.Join(s.workdir(), ".trash"))
	return err == nil && len(entries) == 0
}

// addPeak leaves the file of records with enough free pages for the first commit after the
// start to compact it.
func addPeak(s *scene) {
	s.t.Helper()
	testbed.Unforked(func() {
		db, err := bbolt.Open(filepath.Join(s.workdir(), recordsFile), 0o600, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		key := []byte("peak")
		for _, change := range []func(b *bbolt.Bucket) error{
			func(b *bbolt.Bucket) error { return b.Put(key, make([]byte, 24<<20)) },
			func(b *bbolt.Bucket) error { return b.Delete(key) },
		} {
			err = errors.Join(err, db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("volumes"))) }))
		}
		if err := errors.Join(err, db.Close()); err != nil {
			s.t.Fatal(err)
		}
	})
}

// addLegacy makes what the archived Katbox leaves: a volume of a running pod,
// and one that is retained.
func addLegacy(s *scene) {
	s.t.Helper()
	running, ended := s.add("running", podFiles()), s.add("ended", podFiles())
	s.writeFiles(running)
	s.writeFiles(ended)
	if err := errors.Join(os.Mkdir(running.target, 0o750),
		unix.Mount(s.data(running.pod, running.id), running.target, "", unix.MS_BIND, "")); err != nil {
		s.t.Fatal(err)
	}
	running.published, running.answered = true, true
	running.tell(story.Event{What: story.FoundLive})
	// Longer than the lifespan of a volume that was found without a record.
	deleted, lifespan := time.Now(), 4*time.Second
	ended.answered = true
	ended.tell(story.Event{At: deleted, What: story.FoundKept, Lifespan: lifespan})
	buckets := map[string]map[string]string{
		"volumes": {running.id: fmt.Sprintf(
			`{"name":"ephemeral-%s","id":%q,"podUUID":%q,"size":1099511627776,"path":%q,"accessType":0,"ephemeral":true}`,
			running.id, running.id, running.pod, s.data(running.pod, running.id))},
		"deletedVolumes": {ended.id: fmt.Sprintf(`{"deleteTime":%q,"lifespan":%d,"path":%q}`,
			deleted.Format(time.RFC3339Nano), lifespan, s.data(ended.pod, ended.id))},
	}
	testbed.Unforked(func() { legacyDB(s.t, filepath.Join(s.workdir(), legacyFile), buckets) })
}

func (s *scene) removeTargetParent(v *playedVolume) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Dir(v.target)); err != nil {
		s.t.Fatal(err)
	}
}

// makeUnbindable makes the kernel refuse bind mounts from the working directory, until the
// daemon starts again.
func (s *scene) makeUnbindable() {
	s.t.Helper()
	if err := unix.Mount("", s.workdir(), "", unix.MS_UNBINDABLE, ""); err != nil {
		s.t.Fatal(err)
	}
}

// publishFails publishes the last volume, which fails. Then its pod is deleted.
func (s *scene) publishFails() error {
	v := s.last()
	err := s.publishVolume(v)
	v.published = false
	if code := status.Code(err); code == codes.OK || code == codes.Unavailable || code == codes.Canceled {
		return fmt.Errorf("publish: %w", err)
	}
	// The code says that all is as before.
	v.answered = true
	v.tell(story.Event{What: story.Refused})
	if exists(v.target) {
		v.tell(story.Event{What: story.Failed, Text: "a failed publish has left " + v.target})
	}
	s.look("after a failed publish")
	return nil
}

// unpublishBusy unpublishes the last volume while it is in use, and waits until
// the daemon has tried again.
func (s *scene) unpublishBusy() error {
	v := s.last()
	user, err := os.Open(v.target)
	if err != nil {
		return err
	}
	err = s.unpublishVolume(v)
	if err := user.Close(); err != nil {
		return err
	}
	if code := status.Code(err); code != codes.Aborted {
		return fmt.Errorf("unpublish of a busy volume: %w", err)
	}
	return s.await("retained", func() bool { return s.met(afterEntry) == 2 })
}

// vanish removes the last volume's pod without an unpublish.
func (s *scene) vanish() error {
	v := s.last()
	v.published, v.vanished = false, true
	s.tellUnpublish(v)
	if err := errors.Join(unix.Unmount(v.target, 0), os.RemoveAll(filepath.Join(s.layout().Pods(), v.pod))); err != nil {
		return err
	}
	return s.await("retained", func() bool { return s.met(afterEntry) == 1 })
}

// expires returns op with the end of a volume's lifespan as its operation.
func expires(op crashOperation, files map[string]string) crashOperation {
	op.lives, op.alone = brief, true
	op.do = func(s *scene) error {
		v := s.addPublished("leaving", files)
		if err := s.unpublishVolume(v); err != nil {
			return err
		}
		s.ownPart()
		return s.awaitDeleted(v, 2)
	}
	return op
}

// awaitDeleted waits until a volume is deleted, forgotten by the given commit, and erased.
func (s *scene) awaitDeleted(v *playedVolume, commit int) error {
	return s.await("deleted", func() bool {
		return s.met(afterCommit) >= commit && s.trashIsEmpty() && !exists(s.data(v.pod, v.id))
	})
}

// press uses up the inodes of the working directory's file system.
func (s *scene) press() error {
	v := s.last()
	v.tell(story.Event{What: story.Pressed})
	fill := filepath.Join(s.workdir(), ".fill")
	err := os.Mkdir(fill, 0o700)
	for i := 0; err == nil; i++ {
		err = testbed.WriteUnforked(filepath.Join(fill, strconv.Itoa(i)), nil)
	}
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	return s.awaitDeleted(v, 2)
}

func (s *scene) relieve() {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.workdir(), ".fill")); err != nil {
		s.t.Fatal(err)
	}
}
