package ephemeral

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

const (
	logLine = "2026-11-30T05:00:00.123456789Z stdout F what it said\n"
)

func logsID() volume.ID { return volume.LogsID(testPod) }

// withLogs is withNode with a directory of logs, in which the test pod has printed something.
func withLogs(t *testing.T, test func(t *testing.T, h *testNode)) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.openLogs()
		h.print("main", "0.log", logLine)
		h.start()
		test(t, h)
		h.stop()
		h.logs.Close()
	})
}

func (h *testNode) logsDir() string { return filepath.Join(h.root, "logs") }

// openLogs opens the directory of logs, as a daemon does that starts. Nothing is followed: inotify does not go with a bubble.
func (h *testNode) openLogs() {
	h.t.Helper()
	h.logsLimit = 1 << 20
	err := os.MkdirAll(h.logsDir(), 0o755)
	if err == nil {
		h.logs, err = lastwords.Open(lastwords.Config{Dir: h.logsDir(), MostOpen: 100})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) podLogs() string {
	return filepath.Join(h.logsDir(), "default_batch-1_"+string(testPod))
}

func (h *testNode) print(container, file, text string) {
	h.t.Helper()
	dir := filepath.Join(h.podLogs(), container)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o640)); err != nil {
		h.t.Fatal(err)
	}
}

// removeLogs is what a kubelet does with the logs of a pod that was deleted.
func (h *testNode) removeLogs() {
	h.t.Helper()
	if err := os.RemoveAll(h.podLogs()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) kept(path string) string {
	text, err := os.ReadFile(filepath.Join(h.data(testPod, logsID()), path))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (h *testNode) wantKept(path, want string) {
	h.t.Helper()
	if got := h.kept(path); got != want {
		h.t.Errorf("%s is %q, want %q", path, got, want)
	}
}

// wantLogs returns the record of the logs, which are copied once no call runs.
func (h *testNode) wantLogs() volume.Record {
	h.t.Helper()
	time.Sleep(time.Second)
	return h.wantPhase(logsID(), volume.Retained)
}

func (h *testNode) wantNoLogs() {
	h.t.Helper()
	time.Sleep(time.Second)
	h.wantGone(testPod, logsID())
}

// TestLogsAreKept as one more volume of the pod, though the kubelet removes them as soon as it may.
func TestLogsAreKept(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		owner := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "1c5e4a3b-0000-4000-8000-000000000001"}
		if err := h.node.Own(t.Context(), testID, testPod, owner); err != nil {
			t.Fatal(err)
		}
		if err := h.node.End(t.Context(), testID, testPod, volume.Failed); err != nil {
			t.Fatal(err)
		}
		h.unpublish()
		h.removeLogs()
		r := h.wantLogs()
		h.wantKept("main/0.log", logLine)
		if r.Pod != testPod || r.Namespace != "default" || r.PodName != "batch-1" ||
			r.VolumeName != volume.LogsName || r.ServiceAccount != "robot" ||
			r.Owner != owner || r.Outcome != volume.Failed || r.Lifespan != testLifespan || r.Unpublished.IsZero() {
			t.Errorf("the record of the logs is %+v", r)
		}
		reading, err := h.node.Read(t.Context(), logsID())
		if err != nil {
			t.Fatal(err)
		}
		reading.Close()
		time.Sleep(testLifespan + time.Minute)
		h.wantNoLogs()
		h.wantGone(testPod, testID)
	})
}

// TestLogsHaveTheTermsOfTheLongest volume of the pod, and are kept once.
func TestLogsHaveTheTermsOfTheLongest(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		for i, lifespan := range []time.Duration{time.Hour, 3 * time.Hour, 2 * time.Hour} {
			p := h.publication()
			p.ID, p.Target.Path = numbered(i), h.target(testPod, numberedName(i))
			p.Terms = volume.Terms{Lifespan: lifespan, LifespanSucceeded: lifespan / 2, Limit: volume.Size{Bytes: 1 << 20}, Mode: 0o700}
			if err := h.node.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if err := h.node.Unpublish(t.Context(), numbered(i), h.target(testPod, numberedName(i))); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				h.wantLogs()
				h.print("main", "0.log", "later")
			}
		}
		r := h.wantLogs()
		if want := (volume.Terms{Lifespan: 3 * time.Hour, LifespanSucceeded: 3 * time.Hour / 2}); r.Terms != want || r.Lifespan != 3*time.Hour {
			t.Errorf("the terms are %+v, and it is kept for %s", r.Terms, r.Lifespan)
		}
		h.wantKept("main/0.log", logLine)
		// What is learned of the pod later, the logs learn, too.
		if err := h.node.End(t.Context(), numbered(1), testPod, volume.Succeeded); err != nil {
			t.Fatal(err)
		}
		if r := h.wantLogs(); r.Outcome != volume.Succeeded || r.Lifespan != 3*time.Hour/2 {
			t.Errorf("the outcome is %s, and it is kept for %s", r.Outcome, r.Lifespan)
		}
		owner := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "1c5e4a3b-0000-4000-8000-000000000001"}
		if err := h.node.Own(t.Context(), numbered(1), testPod, owner); err != nil {
			t.Fatal(err)
		}
		if r := h.wantLogs(); r.Owner != owner {
			t.Errorf("the owner is %+v", r.Owner)
		}
	})
}

func numberedName(i int) string { return "mount-" + string(rune('a'+i)) }

// TestNoLogs: of a pod that wants none, of one that attaches the volume of another pod, and of one that printed nothing.
func TestNoLogs(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		p := h.publication()
		p.Terms = volume.Terms{Lifespan: time.Hour, NoLogs: true}
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		// A second volume does not say so.
		second := h.publication()
		second.ID, second.Target.Path = numbered(1), h.target(testPod, "second")
		if err := h.node.Publish(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		h.unpublish()
		if err := h.node.Unpublish(t.Context(), second.ID, second.Target.Path); err != nil {
			t.Fatal(err)
		}
		h.wantNoLogs()
	})
	withLogs(t, func(t *testing.T, h *testNode) {
		h.removeLogs()
		h.publish()
		h.unpublish()
		h.wantNoLogs()
	})
}

// TestLogsOfAPodThatGoesOn, as after a reboot, are replaced at its end, and what was kept before stays if that cannot be.
func TestLogsOfAPodThatGoesOn(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		before := h.wantLogs()
		if _, err := h.node.Pin(t.Context(), logsID(), time.Now().Add(3*time.Hour), "eve", "look at it"); err != nil {
			t.Fatal(err)
		}
		h.publish()
		h.print("main", "1.log", "again")
		time.Sleep(time.Hour)
		h.unpublish()
		r := h.wantLogs()
		h.wantKept("main/0.log", logLine)
		h.wantKept("main/1.log", "again")
		if !r.Unpublished.After(before.Unpublished) || r.Hold.By != "eve" {
			t.Errorf("the record is %+v", r)
		}
		h.publish()
		h.full(everyTime)
		h.unpublish()
		h.wantLogs()
		h.wantKept("main/1.log", "again")
	})
}

// full makes the disk refuse what is written to logs, that many times.
func (h *testNode) full(times int32) {
	var refused atomic.Int32
	kernel.Inject(h.t, func(call, path string) error {
		if call == "Clone" {
			return unix.EOPNOTSUPP
		}
		if call == "Pwrite" && strings.Contains(path, string(logsID())) && refused.Add(1) <= times {
			return unix.ENOSPC
		}
		return nil
	})
}

// everyTime is more often than anything is tried.
const everyTime = 1000

// TestFullDiskCostsTheLogs and not the unpublish. It is counted and logged.
func TestFullDiskCostsTheLogs(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.full(everyTime)
		h.publish()
		h.unpublish()
		h.wantPhase(testID, volume.Retained)
		h.wantNoLogs()
		time.Sleep(time.Minute)
		h.wantNoLogs()
		h.wantValues("full", metricstest.Values{`katbox_logs_kept_total{result="failed"}`: 1})
	})
}

// TestFullDiskIsTriedAgain: once what is deleted has given room, the logs are kept.
func TestFullDiskIsTriedAgain(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.full(1)
		other := h.publication() // which is in use, so it does not go to give room
		other.ID, other.Target.Path, other.Terms.Lifespan = numbered(1), h.target(testPod, "other"), 2*testLifespan
		if err := h.node.Publish(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		h.publish()
		h.unpublish()
		h.wantNoLogs()
		h.removeLogs()
		time.Sleep(time.Minute)
		h.wantLogs()
		h.wantKept("main/0.log", logLine)
		h.wantValues("then", metricstest.Values{`katbox_logs_kept_total{result="whole"}`: 1})
	})
}

// TestVolumeIsGoneBeforeItsLogs: their terms are over as well. That is no error.
func TestVolumeIsGoneBeforeItsLogs(t *testing.T) {
	for name, goes := range map[string]func(h *testNode) error{
		"expired": func(*testNode) error { return nil },
		"purged":  func(h *testNode) error { return h.node.Purge(h.t.Context(), testID, "root", "a secret leaked") },
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(h *testNode) {
				h.openLogs()
				h.print("main", "0.log", logLine)
			}
			withLoggedNode(t, prepare, func(t *testing.T, h *testNode, log *lines) {
				h.full(1)
				h.publishOn(volume.Terms{Lifespan: logsRoom / 2})
				h.unpublish()
				if err := goes(h); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				h.wantGone(testPod, testID)
				h.wantNoLogs()
				h.wantValues("then", metricstest.Values{`katbox_logs_kept_total{result="failed"}`: 1})
				if errs := log.with("cannot keep the logs of a pod"); len(errs) > 0 {
					t.Error(errs)
				}
			})
		})
	}
}

// TestEndIsKeptWithTheLogs, whether it is known before them or after, and without any.
func TestEndIsKeptWithTheLogs(t *testing.T) {
	const first, second = "{\"phase\":\"Succeeded\"}\n", "{\"phase\":\"Failed\"}\n"
	keep := func(t *testing.T, h *testNode, end string) {
		t.Helper()
		if err := h.node.KeepEnd(t.Context(), testPod, []byte(end)); err != nil {
			t.Fatal(err)
		}
	}
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		keep(t, h, first)
		h.unpublish()
		h.wantLogs()
		h.wantKept("main/0.log", logLine)
		h.wantKept(api.PodEnd, first)
		made := h.kept(api.PodEnd)
		keep(t, h, first)
		keep(t, h, second)
		h.wantLogs()
		h.wantKept(api.PodEnd, second)
		h.publish() // and then it goes on
		h.unpublish()
		h.wantLogs()
		h.wantKept(api.PodEnd, second)
		if made != first {
			t.Errorf("at first it was %q", made)
		}
	})
	withLogs(t, func(t *testing.T, h *testNode) {
		h.removeLogs()
		h.publish()
		keep(t, h, first)
		h.unpublish()
		h.wantLogs()
		h.wantKept(api.PodEnd, first)
		h.restart()
		keep(t, h, second)
		h.wantLogs()
		h.wantKept(api.PodEnd, second)
	})
	withLogs(t, func(t *testing.T, h *testNode) {
		p := h.publication()
		p.Terms = volume.Terms{Lifespan: time.Hour, NoLogs: true}
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		keep(t, h, first)
		h.unpublish()
		keep(t, h, first)
		h.wantNoLogs()
	})
	withNode(t, func(t *testing.T, h *testNode) { // with --logs=off
		h.publish()
		keep(t, h, first)
		h.unpublish()
		h.wantNoLogs()
	})
}

// TestEndsAreBounded: those that came first are forgotten.
func TestEndsAreBounded(t *testing.T) {
	e := &ends{all: map[volume.PodUID][]byte{}}
	end := make([]byte, 64<<10)
	for i := range 1000 {
		e.put(volume.PodUID(fmt.Sprint(i)), end)
		e.put(volume.PodUID(fmt.Sprint(i)), end)
	}
	if e.of("0") != nil || e.of("999") == nil || len(e.all) != mostEnds/len(end) || len(e.order) != len(e.all) {
		t.Errorf("%d ends are remembered, of %d bytes", len(e.all), e.bytes)
	}
}

// TestLogsAfterACrash: the next start goes on where the kubelet has them still, keeps what there is where it has them no
// more, and forgets them where there is nothing.
func TestLogsAfterACrash(t *testing.T) {
	half := "half of wha"
	for name, test := range map[string]struct {
		there, copied, off bool
		want               string
	}{
		"the kubelet has them":                         {there: true, copied: true, want: logLine},
		"and nothing was copied":                       {there: true, want: logLine},
		"a part was copied, and they are gone":         {copied: true, want: half},
		"nothing was copied, and they are gone":        {},
		"a part was copied, and logs are kept no more": {there: true, copied: true, off: true, want: half},
		"logs are kept no more":                        {there: true, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			withLogs(t, func(t *testing.T, h *testNode) {
				h.publish()
				h.unpublish()
				r := h.wantLogs()
				h.stop()
				r.Phase, r.Unpublished, r.Lifespan = volume.Publishing, time.Time{}, 0
				if err := h.records.Commit([]volume.Change{{ID: r.ID, Record: &r}}); err != nil {
					t.Fatal(err)
				}
				data := h.data(testPod, logsID())
				err := os.RemoveAll(data)
				if test.copied {
					err = errors.Join(os.MkdirAll(data+"/main", 0o755), os.WriteFile(data+"/main/0.log", []byte(half), 0o644))
				}
				if err != nil {
					t.Fatal(err)
				}
				if !test.there {
					h.removeLogs()
				}
				logs := h.logs
				if test.off {
					h.logs = nil
				}
				h.start()
				h.logs = logs
				if test.want == "" {
					h.wantNoLogs()
					return
				}
				h.wantLogs()
				h.wantKept("main/0.log", test.want)
				if told := h.kept(api.MissingLogs) == "{\"interrupted\":true}\n"; told != (test.want == half) {
					t.Errorf("what is missing is %q", h.kept(api.MissingLogs))
				}
			})
		})
	}
}

// TestLogsOfPodsThatRanAtTheStart: the directory of a pod whose volume was published by an earlier run is followed.
func TestLogsOfPodsThatRanAtTheStart(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.restart()
		h.unpublish()
		h.removeLogs()
		h.wantLogs()
		h.wantKept("main/0.log", logLine)
	})
}

// TestLogsWait for records: a disk that takes none costs the logs, and they are tried no more.
func TestRecordsRefuseLogs(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		refused := errors.New("no")
		h.records.mu.Lock()
		refuse := func(c volume.Change) error {
			if c.ID == logsID() {
				return refused
			}
			return nil
		}
		h.records.onJournal = refuse
		h.records.onCommit = func(changes []volume.Change) error {
			for _, c := range changes {
				if err := refuse(c); err != nil {
					return err
				}
			}
			return nil
		}
		h.records.mu.Unlock()
		h.unpublish()
		h.wantNoLogs()
		h.wantPhase(testID, volume.Retained)
	})
}

// TestDiskOfLogsHangs: a pod whose logs cannot be opened is unpublished all the same, and other volumes come and go.
func TestDiskOfLogsHangs(t *testing.T) {
	roottest.Need(t)
	h := newTestNode(t)
	h.openLogs()
	h.print("main", "0.log", logLine)
	h.metrics = metrics.New("test", "")
	node, err := Start(h.config()) // in no bubble, whose time stands still while the kernel does not answer
	if err != nil {
		t.Fatal(err)
	}
	h.node = node
	defer h.logs.Close()
	defer h.stop()
	h.publish()
	hangs, goOn := roottest.HangOpens(t, h.podLogs())
	h.unpublish()
	<-hangs
	if r, _ := h.records.get(testID); r.Phase != volume.Retained {
		t.Errorf("the volume is %s", r.Phase)
	}
	for i := range 3 {
		p := h.publication()
		p.ID, p.Pod, p.Target.Path = numbered(i), ownPod, h.target(ownPod, numberedName(i))
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := h.node.Unpublish(t.Context(), p.ID, p.Target.Path); err != nil {
			t.Fatal(err)
		}
	}
	goOn()
	for r, _ := h.records.get(logsID()); r.Phase != volume.Retained; r, _ = h.records.get(logsID()) {
		time.Sleep(10 * time.Millisecond)
	}
	h.wantKept("main/0.log", logLine)
}
