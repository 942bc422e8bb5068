package ephemeral

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

const endless = 1 << 40

// TestEndlessErasuresHoldUpNobody: a process that adds to deleted volumes during erasure keeps no
// other volume from being erased, whatever their number, and has ever less of the disk's time.
func TestEndlessErasuresHoldUpNobody(t *testing.T) {
	const attackers = 2 * maxStarted
	b := &fakeTrash{entries: map[string]int{}, slow: time.Second}
	withDisk(t, 2, b, func(t *testing.T, w diskTest) {
		b.put(endless, series("endless", attackers)...)
		w.erase(series("endless", attackers)...)
		time.Sleep(time.Minute)
		b.put(1, "victim")
		w.erase("victim")
		time.Sleep(time.Duration(attackers/maxStarted+1) * erasureSlice)
		synctest.Wait()
		if erased := b.erased(); !slices.Equal(erased, []string{"victim"}) {
			t.Errorf("erased %q, want the victim", erased)
		}
		// Others keep coming, so that none of them has the disk for itself.
		for i := range 10 * mostSlices {
			b.put(1, fmt.Sprint("late", i))
			w.erase(fmt.Sprint("late", i))
			time.Sleep(erasureSlice)
		}
		metricstest.Of(t, w.metrics).Want(t, "after hours", metricstest.Values{"katbox_trash_set_aside_entries": attackers})
		lines := slices.DeleteFunc(w.lines.get(), func(line string) bool { return !strings.Contains(line, errNoEnd.Error()) })
		if len(lines) < attackers {
			t.Errorf("%d lines tell of %d endless erasures: %q", len(lines), attackers, lines)
		}
		if left := b.left(); left > attackers+2*maxStarted {
			t.Errorf("%d entries are left", left)
		}
	})
}

// TestHugeVolumesInACrowd: what takes long makes progress though others come all the time, and is
// not set aside.
func TestHugeVolumesInACrowd(t *testing.T) {
	const minutes = mostSlices / 2
	b := &fakeTrash{entries: map[string]int{}, slow: time.Second}
	withDisk(t, maxStarted, b, func(t *testing.T, w diskTest) {
		b.put(minutes*60, series("huge", maxStarted)...)
		w.erase(series("huge", maxStarted)...)
		for i := range 3 * minutes * 60 {
			b.put(1, fmt.Sprint("small", i))
			w.erase(fmt.Sprint("small", i))
			time.Sleep(time.Second)
			if i%60 == 0 {
				metricstest.Of(t, w.metrics).Want(t, "meanwhile", metricstest.Values{"katbox_trash_set_aside_entries": 0})
			}
		}
		time.Sleep(2 * erasureSlice)
		synctest.Wait()
		if left := b.left(); left != 0 {
			t.Errorf("%d entries are left", left)
		}
	})
}

// TestLargeTrashOfAnEarlierProcess: it is erased piece by piece, what is deleted meanwhile does not
// wait for its end, and the disk is measured for it all.
func TestLargeTrashOfAnEarlierProcess(t *testing.T) {
	const many = 4 * maxWaiting
	b := &fakeTrash{entries: map[string]int{}}
	b.put(1, series("old", many)...)
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		synctest.Wait()
		metricstest.Of(t, w.metrics).Want(t, "at the start", metricstest.Values{"katbox_trash_entries": many})
		w.root.Send(w.disk, &messages.MeasureDisk{})
		time.Sleep(many / 2 * batchTime)
		b.put(1, "new")
		w.erase("new")
		time.Sleep(3 * maxStarted * batchTime)
		synctest.Wait()
		if !slices.Contains(b.erased(), "new") {
			t.Errorf("of %d that are left, what was deleted last waits", b.left())
		}
		if measured := w.measured(); measured != 0 {
			t.Errorf("measured %d times while %d entries are left", measured, b.left())
		}
		time.Sleep(2 * many * batchTime)
		synctest.Wait()
		if left, measured := b.left(), w.measured(); left != 0 || measured != 1 {
			t.Errorf("%d entries are left, measured %d times; want none and once", left, measured)
		}
		metricstest.Of(t, w.metrics).Want(t, "at the end", metricstest.Values{"katbox_trash_entries": 0, "katbox_erased_volumes_total": many + 1})
	})
}

// TestManyThatCannotBeErased are counted, and the log has some lines, not one for each.
func TestManyThatCannotBeErased(t *testing.T) {
	const many = 2 * maxWaiting
	b := &fakeTrash{}
	withDisk(t, maxStarted, b, func(t *testing.T, w diskTest) {
		b.set(errors.New("something is mounted inside"), series("x", many)...)
		time.Sleep(trashInterval + time.Hour)
		synctest.Wait()
		metricstest.Of(t, w.metrics).Want(t, "set aside", metricstest.Values{"katbox_trash_entries": 0, "katbox_trash_set_aside_entries": many})
		passes := int(time.Hour/deleteBackoff.Longest) + 1
		if lines := w.lines.get(); len(lines) > passes*2*(maxRefusedLines+1) || !strings.Contains(strings.Join(lines, "\n"), "more") {
			t.Errorf("%d lines in the log: %q", len(lines), lines)
		}
		b.mu.Lock()
		b.inTheWay = nil
		b.mu.Unlock()
		time.Sleep(2 * deleteBackoff.Longest)
		synctest.Wait()
		if left := b.left(); left != 0 {
			t.Errorf("%d entries are left", left)
		}
		metricstest.Of(t, w.metrics).Want(t, "at the end", metricstest.Values{"katbox_trash_entries": 0, "katbox_trash_set_aside_entries": 0})
	})
}
