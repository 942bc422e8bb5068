package metrics

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRecordsThatHang: a write to the journal that does not return is told while it hangs. Nothing comes to its end then that
// could set a metric.
func TestRecordsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New("test", "")
		var writing, waiting time.Time
		m.WatchRecords(RecordTimes{Writing: func() time.Time { return writing }, Waiting: func() time.Time { return waiting }})
		for _, step := range []struct {
			what       string
			do         func()
			wait, late float64
		}{
			{"nothing to write", func() {}, 0, 0},
			{"a write has begun", func() { writing, waiting = time.Now(), time.Now() }, 0, 0},
			{"it has not returned", func() { time.Sleep(2 * time.Second) }, 1, 2},
			{"nor later", func() { time.Sleep(time.Minute) }, 1, 62},
			{"it has returned, late", func() { writing = time.Time{} }, 0, 62},
			{"calls wait for commits", func() { m.Waits(true) }, 1, 62},
			{"all is durable", func() { waiting = time.Time{}; m.Waits(false) }, 0, 0},
		} {
			step.do()
			if wait, late := m.records.wait(), m.records.notDurable(); wait != step.wait || late != step.late {
				t.Errorf("%s: katbox_records_wait %v and katbox_records_durable_seconds %v, want %v and %v", step.what, wait, late,
					step.wait, step.late)
			}
		}
	})
}
