package store

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// FuzzRecord looks for a record that is accepted, and read as another one or not at all.
func FuzzRecord(f *testing.F) {
	f.Add("csi-1", "uid-1", "batch", "job-1", byte(volume.Published), "/pods/a", "nosuid", true, false, int64(time.Hour))
	f.Add("csi-1", "uid-1", "", "", byte(volume.Retained), "", "", false, true, int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, id, pod, namespace, podName string, phase byte, path, flag string, readOnly, leaving bool, lifespan int64) {
		now := time.Now()
		r := volume.Record{
			ID: volume.ID(id), Pod: volume.PodUID(pod), Namespace: namespace, PodName: podName,
			VolumeName: podName + "-v", ServiceAccount: namespace, Published: time.Unix(max(lifespan, 1), 0),
			Phase: volume.Phase(phase), Lifespan: time.Duration(lifespan),
		}
		// Any owner that may be.
		owner := volume.Owner{Verdict: volume.Confirmed, NamespaceUID: pod, Kind: flag, Name: podName, UID: id, Job: namespace, JobIndex: path}
		switch {
		case owner.Check() == nil:
			r.Owner = owner
		case readOnly:
			r.Owner.Verdict = volume.Denied
		}
		r = withPromise(r, flag, readOnly)
		if path != "" {
			r = r.WithTarget(volume.Target{Path: path, ReadOnly: readOnly, MultiWriter: !readOnly, Leaving: leaving})
			r = r.WithTarget(volume.Target{Path: path + "/b", Flags: []string{flag, flag}})
		}
		if !r.Phase.Live() {
			r.Unpublished = now.Add(-time.Hour)
		}
		m := moment{now: now, boot: 7, boottime: int64(2 * time.Hour)}
		value, err := encodeValue(r, m)
		if err != nil {
			_, idErr := volume.ParseID("id", id)
			_, podErr := volume.ParsePodUID("pod", pod)
			if idErr == nil && podErr == nil && r.Phase.Valid() && lifespan >= 0 {
				t.Errorf("%+v cannot be written: %v", r, err)
			}
			return
		}
		checkUsable(t, r, now)
		got, err := decodeValue([]byte(id), value, m)
		if err != nil {
			t.Fatalf("%+v was written and cannot be read: %v", r, err)
		}
		same := slices.EqualFunc(got.Targets, r.Targets, func(a, b volume.Target) bool {
			return a.SameMount(b) && a.MultiWriter == b.MultiWriter && a.Leaving == b.Leaving
		})
		if !same || got.ID != r.ID || got.Pod != r.Pod || got.Namespace != namespace || got.PodName != podName ||
			got.VolumeName != r.VolumeName || got.ServiceAccount != r.ServiceAccount || !got.Published.Equal(r.Published) ||
			got.Owner != r.Owner || got.Terms != r.Terms || got.Outcome != r.Outcome || got.Hold != r.Hold ||
			got.Project != r.Project || got.Attach != r.Attach || got.Phase != r.Phase ||
			got.Lifespan != r.Lifespan || !got.Unpublished.Equal(r.Unpublished) {
			t.Errorf("wrote %+v\nread  %+v", r, got)
		}
		// The checksum covers the key: a value does not speak for another volume.
		if other, err := decodeValue([]byte(id+"x"), value, m); err == nil {
			t.Errorf("read as another volume: %+v", other)
		}
	})
}

// withPromise returns r with any promise that may be.
func withPromise(r volume.Record, text string, success bool) volume.Record {
	n := uint64(r.Lifespan)
	terms := volume.Terms{
		Lifespan: r.Lifespan, LifespanSucceeded: r.Lifespan / 2, Retain: volume.Retain(n % 3), Mode: uint32(n) & 0o1777,
		Limit: volume.Size{Bytes: int64(r.Lifespan), Inodes: int64(len(text))},
	}
	if terms.Check() == nil {
		r.Terms = terms
	}
	if r.Outcome = volume.Outcome(n % 4); success {
		r.Outcome = volume.Succeeded
	}
	hold := volume.Hold{Kind: volume.HoldKind(1 + n%2), For: r.Lifespan, By: r.PodName, Why: text}
	if hold.Check() == nil {
		r.Hold = hold
	}
	r.Project = uint32(n)
	if attach := (volume.Place{Pod: r.Pod, ID: volume.ID(r.Pod)}); checkAttach(attach) == nil {
		r.Attach = attach
	}
	return r
}

// FuzzStoredTime looks for a stored time that is read as one in the future, as one without the
// monotonic reading, or as an earlier one than was written.
func FuzzStoredTime(f *testing.F) {
	f.Add(int64(1), uint64(7), int64(math.MinInt64), uint64(7), int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64), uint64(6), int64(5), uint64(7), int64(5))
	f.Add(time.Now().UnixNano(), uint64(0), int64(0), uint64(0), int64(0))
	f.Fuzz(func(t *testing.T, wall int64, boot uint64, boottime int64, nowBoot uint64, nowBoottime int64) {
		if wall < 0 {
			return // decodeValue refuses it
		}
		m := moment{now: time.Now(), boot: nowBoot, boottime: nowBoottime}
		got := m.time(wall, boot, boottime)
		if got.IsZero() != (wall == 0) {
			t.Fatalf("wall clock %d: %v", wall, got)
		}
		if wall == 0 {
			return
		}
		// Equal by the wall clock alone is not enough: a step of it must move nothing.
		if got.After(m.now) || got.Year() < 1900 || !strings.Contains(got.String(), " m=") {
			t.Errorf("%d, boot %d, %d at %+v: %v", wall, boot, boottime, m, got)
		}
		// Written and read again in this boot it is the same; the reading has no room for less than
		// there is since the boot.
		if nowBoottime < 0 || nowBoot == 0 {
			return
		}
		again := m.time(m.stored(got))
		if !again.Equal(got) {
			t.Errorf("%v became %v", got, again)
		}
		later := m
		later.now = m.now.Add(time.Hour)
		later.boottime = nowBoottime + int64(min(time.Hour, time.Duration(math.MaxInt64-nowBoottime)))
		if after := later.time(m.stored(got)); after.Before(got) {
			t.Errorf("%v, an hour later %v", got, after)
		}
	})
}

// FuzzWholeStore looks for a damaged file that takes the daemon down, or that has records which
// could do harm. Two patches damage it; what they do to the numbers of a meta page counts only with
// its checksum made right again.
func FuzzWholeStore(f *testing.F) {
	bases := [][]byte{wellUsed(f, 3), smallPages(f)}
	f.Add(byte(0), uint16(0), []byte{}, uint16(0), []byte{}, uint16(0), false)
	for _, base := range []byte{0, 1} {
		f.Add(base, uint16(pageHeaderSize+8), []byte{0, 2}, uint16(1024+pageHeaderSize+16), []byte{9}, uint16(0), true)
		f.Add(base, uint16(4096+pageHeaderSize+16), []byte{2}, uint16(4096*3+pageHeaderSize), []byte{1}, uint16(20_000), true)
	}
	f.Fuzz(func(t *testing.T, base byte, at1 uint16, patch1 []byte, at2 uint16, patch2 []byte, cut uint16, reseal bool) {
		data := damage(bases[int(base)%len(bases)], at1, patch1, at2, patch2, cut, reseal)
		use(t, writeFile(t, data))
	})
}

// FuzzWholeImport does the same to the old driver's database.
func FuzzWholeImport(f *testing.F) {
	whole := readFixture(f)
	s := openStore(f, f.TempDir()+"/store.db")
	f.Add(uint16(0), []byte{}, uint16(0), []byte{}, uint16(0), false)
	f.Add(uint16(8192), []byte{2, 0, 0, 0}, uint16(12288+16), []byte{0xff}, uint16(0), false)
	f.Add(uint16(pageHeaderSize+16), []byte{3}, uint16(4096+pageHeaderSize+32), []byte{3}, uint16(0), true)
	f.Fuzz(func(t *testing.T, at1 uint16, patch1 []byte, at2 uint16, patch2 []byte, cut uint16, reseal bool) {
		path := writeFile(t, damage(whole, at1, patch1, at2, patch2, cut, reseal))
		now := time.Now()
		got, err := s.ImportLegacy(path, "/csi-data-dir", now)
		records, damaged, loadErr := loadAll(s, now)
		if loadErr != nil || len(damaged) > 0 {
			t.Fatalf("load: %v, %v", damaged, loadErr)
		}
		if err != nil {
			if !errors.Is(err, ErrDamaged) || len(records) > 0 || got.Done {
				t.Errorf("%+v and %d records with %v, want ErrDamaged", got, len(records), err)
			}
			return
		}
		if !got.Done || got.Published+got.Retained != len(records) {
			t.Errorf("imported %+v, and there are %d records", got, len(records))
		}
		for _, r := range records {
			checkLegacyRecord(t, r, string(r.ID))
			commit(t, s, forget(r.ID))
		}
		forgetImport(t, s, path)
	})
}
