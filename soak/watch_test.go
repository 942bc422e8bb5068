package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRetainedJudge(t *testing.T) {
	now := time.Now()
	at := func(s float64) time.Time { return now.Add(time.Duration(s * float64(time.Second))) }
	r := &retained{earliest: at(10), deadline: at(11), latest: at(16)}
	for _, test := range []struct {
		name          string
		before, after float64
		found         presence
		broken        promise
		over          bool
	}{
		{"there in time", 5, 5, whole, "", false},
		{"there in its last moments", 10, 10.5, whole, "", false},
		{"there late, but tolerated", 15.9, 17, whole, "", false},
		{"there for too long", 16.1, 16.2, whole, keptTooLong, true},
		{"gone early", 9.8, 9.9, gone, deletedEarly, true},
		{"gone, perhaps just in time", 9.9, 10.1, gone, "", true},
		{"gone in time", 12, 12, gone, "", true},
		{"gone late, nobody saw when", 30, 30, gone, "", true},
		{"marker lost", 5, 5, partial, lostMarker, true},
		{"deleted by halves", 11, 11, partial, halfDeleted, true},
	} {
		broken, over := r.judge(at(test.before), at(test.after), test.found)
		if broken != test.broken || over != test.over {
			t.Errorf("%s: %q, over %t; want %q, over %t", test.name, broken, over, test.broken, test.over)
		}
	}
}

// retainedVolume is a volume with a marker in its data directory that was
// unpublished just now.
func retainedVolume(t *testing.T) *volume {
	t.Helper()
	o := testOptions()
	l := layout{work: t.TempDir(), kubelet: t.TempDir()}
	pod := plan{o}.pod(0)
	v := newVolume(l, pod, pod.volumes[0])
	if err := os.MkdirAll(v.data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.data, markerName), []byte(v.markerText()), 0o644); err != nil {
		t.Fatal(err)
	}
	v.calls.end(v.calls.begin(unpublish), nil)
	return v
}

func TestWatch(t *testing.T) {
	const lifespan = 300 * time.Millisecond
	removeAll := func(v *volume) error { return os.RemoveAll(v.data) }
	for _, test := range []struct {
		name  string
		after time.Duration
		do    func(*volume) error
		want  promise
	}{
		{"expires", lifespan + 50*time.Millisecond, removeAll, ""},
		{"deleted early", 0, removeAll, deletedEarly},
		{"kept for ever", 0, func(*volume) error { return nil }, keptTooLong},
		{"marker lost", 0, func(v *volume) error { return os.Remove(filepath.Join(v.data, markerName)) }, lostMarker},
		{"marker of another volume", 0, func(v *volume) error {
			return os.WriteFile(filepath.Join(v.data, markerName), []byte("csi-other 1\n"), 0o644)
		}, lostMarker},
		{"deleted by halves", lifespan + 50*time.Millisecond, func(v *volume) error {
			return os.Remove(filepath.Join(v.data, markerName))
		}, halfDeleted},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := retainedVolume(t)
			s, f := newStats(), &findings{}
			w := &watch{lifespan: lifespan, tolerance: 500 * time.Millisecond, stats: s, findings: f}
			w.add(v)
			w.close()
			time.AfterFunc(test.after, func() {
				if err := test.do(v); err != nil {
					t.Error(err)
				}
			})
			w.run(context.Background())
			if test.want == "" {
				if f.sum() != 0 || s.seen != 1 || s.expired != 1 {
					t.Errorf("%d seen, %d expired, violations %+v; want 1, 1 and none", s.seen, s.expired, f.all())
				}
				return
			}
			if f.number(test.want) != 1 || f.sum() != 1 {
				t.Errorf("violations %+v, want one: %s", f.all(), test.want)
			}
			if found := f.all(); len(found) == 1 && (found[0].volume != v.plan.id || len(found[0].calls) == 0) {
				t.Errorf("the violation does not tell the volume's story: %+v", found[0])
			}
			if s.expired != 0 {
				t.Error("the volume also counts as expired in time")
			}
		})
	}
}

func TestWatchMissesWhatIsGoneAtOnce(t *testing.T) {
	v := retainedVolume(t)
	if err := os.RemoveAll(v.data); err != nil {
		t.Fatal(err)
	}
	f := &findings{}
	w := &watch{lifespan: time.Hour, stats: newStats(), findings: f}
	w.add(v)
	if f.number(deletedEarly) != 1 {
		t.Errorf("violations %+v, want %s", f.all(), deletedEarly)
	}
}

// TestWatchLooksAhead finds a loss long before the deadline when it is told to.
func TestWatchLooksAhead(t *testing.T) {
	v := retainedVolume(t)
	f := &findings{}
	w := &watch{lifespan: time.Hour, stats: newStats(), findings: f}
	w.add(v)
	if err := os.RemoveAll(v.data); err != nil {
		t.Fatal(err)
	}
	if left, _ := w.pass(lastMoments); left != 1 || f.sum() != 0 {
		t.Fatalf("%d left and %d violations in an ordinary pass, want 1 and 0", left, f.sum())
	}
	if left, _ := w.pass(time.Hour); left != 0 || f.number(deletedEarly) != 1 {
		t.Errorf("%d left and violations %+v, want none left and %s", left, f.all(), deletedEarly)
	}
}
