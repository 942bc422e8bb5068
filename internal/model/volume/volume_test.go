package volume

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestNamesAreOnePlainPathElement(t *testing.T) {
	for _, good := range []string{"csi-" + strings.Repeat("a", 64), "a", "a b", "a..b", "ä", "-", strings.Repeat("x", MaxNameLength)} {
		if id, err := ParseID("volume_id", good); err != nil || string(id) != good {
			t.Errorf("%q: %q, %v", good, id, err)
		}
		if pod, err := ParsePodUID("pod", good); err != nil || string(pod) != good {
			t.Errorf("%q: %q, %v", good, pod, err)
		}
	}
	for _, bad := range []string{"", ".", "..", ".trash", "/", "a/b", "../x", "a\x00", strings.Repeat("x", MaxNameLength+1)} {
		_, err := ParseID("volume_id", bad)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !errors.Is(err, ErrInvalid) || invalid.Field != "volume_id" {
			t.Errorf("%q: %v, want an InvalidError about volume_id", bad, err)
		}
	}
}

func TestNoPodIsCalledLostAndFound(t *testing.T) {
	if _, err := ParsePodUID("pod", "lost+found"); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
	if _, err := ParseID("volume_id", "lost+found"); err != nil {
		t.Errorf("as a volume ID, below a pod: %v", err)
	}
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"csi-1", "..", "a/b", "", "a\x00b", ".x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := ParseID("volume_id", s); err != nil {
			return
		}
		if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") || len(s) > MaxNameLength {
			t.Errorf("%q was accepted", s)
		}
	})
}

// TestPhaseChanges writes the table down a second time, as pairs.
func TestPhaseChanges(t *testing.T) {
	allowed := []string{
		"Unknown-Publishing", "Unknown-Published", "Unknown-Retained",
		"Publishing-Published", "Publishing-Unpublishing", "Publishing-Retained", "Publishing-Unknown",
		"Published-Publishing", "Published-Unpublishing", "Published-Retained",
		"Unpublishing-Publishing", "Unpublishing-Retained",
		"Retained-Publishing", "Retained-Deleting",
		"Deleting-Unknown",
	}
	for from := Unknown; from <= Deleting; from++ {
		for to := Unknown; to <= Deleting; to++ {
			pair := from.String() + "-" + to.String()
			if got, want := from.CanBecome(to), slices.Contains(allowed, pair); got != want {
				t.Errorf("%s: %t, want %t", pair, got, want)
			}
		}
	}
}

// TestLiveDataIsNeverDeleted: no phase in which a pod may use the data leads to Deleting without
// Retained in between.
func TestLiveDataIsNeverDeleted(t *testing.T) {
	for p := Publishing; p <= Deleting; p++ {
		if p.Live() && p.CanBecome(Deleting) {
			t.Errorf("%s can become Deleting", p)
		}
		if p.Live() != (p != Retained && p != Deleting) {
			t.Errorf("%s is live: %t", p, p.Live())
		}
	}
}

func TestPhaseNames(t *testing.T) {
	if Unknown.Valid() || Phase(99).Valid() || !Retained.Valid() {
		t.Error("valid phases are not the five")
	}
	if got := fmt.Sprint(Retained, Phase(99)); got != "Retained Phase(99)" {
		t.Errorf("got %q", got)
	}
}

func TestTargetsOfARecordAreCopied(t *testing.T) {
	one := Record{ID: "v"}.WithTarget(Target{Path: "/a"})
	two := one.WithTarget(Target{Path: "/b"})
	changed := two.WithTarget(Target{Path: "/a", ReadOnly: true})
	without := changed.WithoutTarget("/b")
	if len(one.Targets) != 1 || len(two.Targets) != 2 || len(changed.Targets) != 2 || len(without.Targets) != 1 {
		t.Fatalf("%v %v %v %v", one, two, changed, without)
	}
	if got, ok := two.Target("/a"); !ok || got.ReadOnly {
		t.Error("a copy changed the original")
	}
	if got, ok := changed.Target("/a"); !ok || !got.ReadOnly {
		t.Error("the target was not replaced")
	}
	if _, ok := without.Target("/b"); ok {
		t.Error("the target was not removed")
	}
	now := time.Now()
	if kept := two.Retain(now, time.Hour); kept.Phase != Retained || kept.Targets != nil || !kept.Unpublished.Equal(now) ||
		kept.Lifespan != time.Hour {
		t.Errorf("retained %+v", kept)
	}
}

func TestSameMount(t *testing.T) {
	base := Target{Path: "/a", Flags: []string{"noexec"}}
	same := base
	same.MultiWriter, same.Leaving = true, true
	if !base.SameMount(same) {
		t.Error("what the kernel does not see makes a difference")
	}
	for _, other := range []Target{{Path: "/b", Flags: base.Flags}, {Path: "/a"}, {Path: "/a", Flags: base.Flags, ReadOnly: true}} {
		if base.SameMount(other) {
			t.Errorf("%+v is the same as %+v", other, base)
		}
	}
}

// TestWhatAPublishTells: a publish begins a volume's life or goes on with it.
func TestWhatAPublishTells(t *testing.T) {
	p := Publication{ID: "v", Pod: "p", Namespace: "batch", PodName: "job", VolumeName: "scratch", ServiceAccount: "robot",
		Target: Target{Path: "/a"}}
	before, now := time.Unix(1000, 0), time.Unix(2000, 999)
	for _, tt := range []struct {
		name   string
		record Record
		want   time.Time
	}{
		{"unknown", Record{}, time.Unix(2000, 0)},
		{"retained", Record{Phase: Retained, Published: before, Unpublished: before}, time.Unix(2000, 0)},
		{"published", Record{Phase: Published, Published: before}, before},
		{"unpublishing", Record{Phase: Unpublishing, Published: before}, before},
		{"found mounted", Record{Phase: Published}, time.Time{}},
	} {
		got := tt.record.Publish(p, now)
		if !got.Published.Equal(tt.want) || got.Phase != Publishing || !got.Unpublished.IsZero() || len(got.Targets) != 1 {
			t.Errorf("%s: %+v, want it published at %v", tt.name, got, tt.want)
		}
		if got.Namespace != "batch" || got.PodName != "job" || got.VolumeName != "scratch" || got.ServiceAccount != "robot" {
			t.Errorf("%s: %+v has not the names of %+v", tt.name, got, p)
		}
	}
}

func TestObjectNames(t *testing.T) {
	for _, good := range []string{"", "a", "default", "my-job-x7k2q.example", "0", strings.Repeat("a", 253)} {
		if got := ObjectName(good); got != good {
			t.Errorf("%q became %q", good, got)
		}
	}
	for _, bad := range []string{"A", "a b", "a/b", "a\nb", "\x00", "ä", "a_b", `"`, strings.Repeat("a", 254)} {
		if got := ObjectName(bad); got != "" {
			t.Errorf("%q became %q, want nothing", bad, got)
		}
	}
}

func TestWantsRoom(t *testing.T) {
	for _, full := range []error{
		ErrNoSpace, syscall.ENOSPC, syscall.EDQUOT, syscall.EMLINK,
		fmt.Errorf("mkdir: %w", syscall.ENOSPC),
		errors.New("file resize error: truncate: no space left on device"),
	} {
		marked := WantsRoom(full, "in a place")
		if !IsNoSpace(full) || !errors.Is(marked, ErrNoSpace) || !errors.Is(marked, full) {
			t.Errorf("%v became %v, want ErrNoSpace as well", full, marked)
		}
		if !errors.Is(full, ErrNoSpace) && !strings.HasPrefix(marked.Error(), "no space left in a place: ") {
			t.Errorf("%q does not say where there is no room", marked)
		}
		if twice := WantsRoom(marked, InWorkdir); twice.Error() != marked.Error() {
			t.Errorf("%v is marked twice: %v", full, twice)
		}
	}
	if marked := WantsRoom(errors.New("write: disk quota exceeded"), InWorkdir); !errors.Is(marked, syscall.EDQUOT) {
		t.Errorf("%v, want EDQUOT as well", marked)
	}
	for _, other := range []error{nil, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, ErrBusy} {
		if got := WantsRoom(other, InWorkdir); !errors.Is(got, other) || errors.Is(got, ErrNoSpace) || IsNoSpace(other) {
			t.Errorf("%v became %v, want it as it is", other, got)
		}
	}
}

// TestExhausted: what no deletion helps against says what does, and is not want of room.
func TestExhausted(t *testing.T) {
	for number, advice := range map[syscall.Errno]string{
		syscall.EMFILE: "RLIMIT_NOFILE", syscall.ENFILE: "fs.file-max", syscall.ENOMEM: "memory limit",
	} {
		err := fmt.Errorf("mkdir: %w", number)
		marked := Exhausted(err)
		if !errors.Is(marked, ErrExhausted) || !errors.Is(marked, number) || !strings.Contains(marked.Error(), advice) || IsNoSpace(marked) {
			t.Errorf("%v became %v", err, marked)
		}
		if twice := Exhausted(marked); twice.Error() != marked.Error() {
			t.Errorf("%v is marked twice: %v", err, twice)
		}
	}
	for _, other := range []error{nil, syscall.EIO, syscall.ENOSPC, syscall.EMLINK, ErrBusy} {
		if got := Exhausted(other); !errors.Is(got, other) || errors.Is(got, ErrExhausted) {
			t.Errorf("%v became %v, want it as it is", other, got)
		}
	}
}
