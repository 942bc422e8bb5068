package retained

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	kubeletID  = "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	kubeletPod = "01234567-89ab-cdef-0123-456789abcdef"
)

// TestRecordsComeBackWhole: with any names, of any length.
func TestRecordsComeBackWhole(t *testing.T) {
	table := &table{}
	ids := []string{"v", kubeletID, strings.ToUpper(kubeletID), kubeletID[:67], kubeletID + "0", "csi-" + strings.Repeat("x", 64),
		"\x00", strings.Repeat("i", volume.MaxNameLength)}
	pods := []string{"p", kubeletPod, strings.ToUpper(kubeletPod), kubeletPod[1:], kubeletPod + "0", strings.Repeat("-", 36),
		strings.Repeat("0", 36), "0123456-789ab-cdef-0123-456789abcdef", strings.Repeat("p", volume.MaxNameLength)}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, id := range append(ids, "as a kubelet makes them") {
		for _, pod := range pods {
			for length := range 300 {
				want := volume.Record{ID: volume.ID(id), Pod: volume.PodUID(pod), Namespace: fmt.Sprint("n", length%3),
					PodName: strings.Repeat("n", length), VolumeName: fmt.Sprint("v", length%5), ServiceAccount: "robot"}
				if length%2 == 0 {
					want.Published = time.Unix(epoch.Unix()<<(length%8), 0)
				}
				if id == "as a kubelet makes them" {
					want.ID = volume.KubeletID(want.Pod, want.VolumeName)
				}
				want.Owner = anyOwner(rng, want.PodName)
				want = want.Retain(epoch.Add(time.Duration(length)), time.Hour)
				want.Project = uint32(length) << 24
				want.Outcome, want.Terms, want.Hold = anyOutcome(rng), anyTerms(rng), anyHold(rng)
				n := table.insert(&want)
				if got := table.record(n); !reflect.DeepEqual(got, want) {
					t.Fatalf("%+v came back as %+v", want, got)
				}
				if got := (volume.Place{Pod: table.pod(n), ID: table.id(n)}); got != want.Place() {
					t.Fatalf("%s came back as %s", want.Place(), got)
				}
				if table.find(want.ID) != n || table.find(want.ID[1:]) != 0 {
					t.Fatalf("%s is not found, or another is", want.ID)
				}
				table.remove(n)
			}
		}
	}
	checkEmpty(t, table)
}

// checkEmpty reports whatever a table keeps that has no entries.
func checkEmpty(t *testing.T, table *table) {
	t.Helper()
	for what, left := range map[string]int{
		"groups": len(table.groups.numbers), "spaces": len(table.spaces.numbers), "fates": len(table.fates.numbers),
		"hashes": len(table.byHash), "holds": len(table.holds.all), "texts of holds": len(table.holds.texts.numbers), "entries": table.length,
	} {
		if left != 0 {
			t.Errorf("%d %s are left", left, what)
		}
	}
}

func anyOutcome(rng *rand.Rand) volume.Outcome {
	return volume.Outcome(rng.IntN(int(volume.Stopped) + 1))
}

// anyTerms returns terms that few others have, or none.
func anyTerms(rng *rand.Rand) volume.Terms {
	if rng.IntN(2) == 0 {
		return volume.Terms{}
	}
	t := volume.Terms{Lifespan: time.Duration(rng.Int64()), Retain: volume.Retain(rng.IntN(3)), Mode: 0o1777,
		Limit: volume.Size{Bytes: rng.Int64(), Inodes: rng.Int64N(1000)}}
	t.LifespanSucceeded = t.Lifespan / 2
	return t
}

func anyHold(rng *rand.Rand) volume.Hold {
	kind := volume.HoldKind(rng.IntN(3))
	if kind == volume.NoHold {
		return volume.Hold{}
	}
	by := []string{"anna", "otto"}[rng.IntN(2)]
	return volume.Hold{Kind: kind, For: time.Duration(rng.Int64N(int64(100 * time.Hour))), By: by, Why: "look\tat it"}
}

// TestVolumeTakes128Bytes: with one more field, some volumes would take 192. An owner, an outcome,
// terms and a project quota add nothing to a kubelet's volume with a common name.
func TestVolumeTakes128Bytes(t *testing.T) {
	if e, m := unsafe.Sizeof(entry{}), unsafe.Sizeof(text{}); e != 64 || m != 64 {
		t.Errorf("an entry has %d bytes and what follows %d, want 64 of each", e, m)
	}
	job := strings.Repeat("j", 37)
	for name, tt := range map[string]struct {
		podName string
		id      volume.ID
		owner   volume.Owner
	}{
		"any ID":         {strings.Repeat("n", 30), kubeletID, volume.Owner{}},
		"a kubelet's ID": {strings.Repeat("n", 62), "", volume.Owner{}},
		"owned": {job + "-12345", "", volume.Owner{
			Verdict: volume.Confirmed, NamespaceUID: kubeletPod, Kind: "Job", Name: job, UID: kubeletPod, Job: job,
		}},
	} {
		r := volume.Record{ID: tt.id, Pod: kubeletPod, Namespace: strings.Repeat("s", 63), PodName: tt.podName, Owner: tt.owner,
			VolumeName: strings.Repeat("v", 63), ServiceAccount: strings.Repeat("a", 253),
			Published: epoch.Add(-12 * 24 * time.Hour), Project: math.MaxUint32,
			Outcome: volume.Failed, Terms: volume.Terms{Lifespan: time.Hour, Limit: volume.Size{Bytes: 1 << 40}}}.Retain(epoch, time.Hour)
		if r.ID == "" {
			r.ID = volume.KubeletID(r.Pod, r.VolumeName)
		}
		table := &table{}
		if more := table.entry(table.insert(&r)).more; more == 0 || table.texts.at(more).more != 0 {
			t.Errorf("%s: want one text beside the entry", name)
		}
	}
}

// TestNamesThatAreAllDifferent: hostile or generated names come back, without a group for each.
func TestNamesThatAreAllDifferent(t *testing.T) {
	table := &table{}
	named := func(i int) volume.Record {
		return volume.Record{ID: volume.ID(fmt.Sprint("csi-", i)), Pod: kubeletPod, PodName: "p", Namespace: fmt.Sprint("space-", i),
			VolumeName: fmt.Sprint("volume-", i), ServiceAccount: fmt.Sprint("account-", i), Published: epoch.Local(),
			Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: fmt.Sprint("uid-", i), Kind: "Job", Name: "p"}}.Retain(epoch, time.Hour)
	}
	numbers := make([]number, 3*maxGroups)
	for i := range numbers {
		r := named(i)
		numbers[i] = table.insert(&r)
	}
	if groups, spaces := len(table.groups.numbers), len(table.spaces.numbers); groups != maxGroups+1 || spaces != maxGroups+1 {
		t.Errorf("%d groups and %d spaces of %d volumes with different names, want %d", groups, spaces, len(numbers), maxGroups+1)
	}
	for i, n := range numbers {
		if got, want := table.record(n), named(i); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v came back as %+v", want, got)
		}
		table.remove(n)
	}
	if groups := len(table.groups.numbers); groups != 0 {
		t.Errorf("%d groups are left", groups)
	}
}

// TestTermsThatAreAllDifferent: each pod may ask for a limit of its own.
func TestTermsThatAreAllDifferent(t *testing.T) {
	table := &table{}
	asking := func(i int) volume.Record {
		r := volume.Record{ID: volume.ID(fmt.Sprint("csi-", i)), Pod: kubeletPod, Outcome: volume.Outcome(i % 4)}.Retain(epoch, time.Hour)
		r.Terms = volume.Terms{Lifespan: time.Hour, LifespanSucceeded: time.Minute, Limit: volume.Size{Bytes: int64(i), Inodes: int64(i)}}
		if i%1000 == 0 {
			r.VolumeName = "of another group"
			r.Hold = volume.Hold{Kind: volume.Pinned, For: time.Duration(i), Why: "because"}
		}
		return r
	}
	numbers := make([]number, 3*maxGroups)
	for i := range numbers {
		r := asking(i)
		numbers[i] = table.insert(&r)
	}
	if fates := len(table.fates.numbers); fates > maxGroups+4 {
		t.Errorf("%d fates of %d volumes with different limits, want %d", fates, len(numbers), maxGroups+4)
	}
	for i, n := range numbers {
		if got, want := table.record(n), asking(i); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v came back as %+v", want, got)
		}
		table.remove(n)
	}
	checkEmpty(t, table)
}

// TestManyVolumesAreFound: some of them have the same hash.
func TestManyVolumesAreFound(t *testing.T) {
	const size = 300_000
	table := &table{}
	named := func(i int) volume.ID { return volume.ID(fmt.Sprintf("csi-%064x", i)) }
	numbers := make([]number, size)
	for i := range numbers {
		r := volume.Record{ID: named(i), Pod: kubeletPod}.Retain(epoch.Add(time.Duration(i)), time.Hour)
		numbers[i] = table.insert(&r)
	}
	t.Logf("%d of %d IDs have the hash of another", size-len(table.byHash), size)
	for step, i := range rand.New(rand.NewPCG(1, 2)).Perm(size) {
		if n := table.find(named(i)); n != numbers[i] {
			t.Fatalf("found %d, want %d", n, numbers[i])
		}
		if step%2 == 0 {
			table.remove(numbers[i])
			if n := table.find(named(i)); n != 0 {
				t.Fatalf("found %d after it was removed", n)
			}
		}
	}
	if table.length != size/2 {
		t.Errorf("%d volumes, want %d", table.length, size/2)
	}
}

// TestPlacesAreUsedAgain: volumes that come and go take no more memory than those that are there.
func TestPlacesAreUsedAgain(t *testing.T) {
	table := &table{}
	r := volume.Record{ID: kubeletID, Pod: kubeletPod, PodName: strings.Repeat("n", 200)}.Retain(epoch, time.Hour)
	for range 10 {
		table.remove(table.insert(&r))
	}
	entries, texts := table.entries.alloc(), table.texts.alloc()
	if entries != 1 || texts > 4 {
		t.Errorf("entry %d and text %d come next, want those of the one volume there was", entries, texts)
	}
}

func TestInterned(t *testing.T) {
	var s interned[space]
	named := func(name string) space { return space{namespace: name} }
	a, b := s.use(named("a")), s.use(named("b"))
	if s.use(named("a")) != a || a == b || *s.value(a) != named("a") || *s.value(b) != named("b") {
		t.Errorf("a is %d, b is %d", a, b)
	}
	s.drop(a)
	if *s.value(a) != named("a") {
		t.Error("a is gone and has a user")
	}
	s.drop(a)
	if c := s.use(named("c")); c != a || *s.value(c) != named("c") || *s.value(b) != named("b") {
		t.Errorf("c has number %d, want that of a, %d", c, a)
	}
	s.drop(b)
	if len(s.numbers) != 1 {
		t.Errorf("known %v, want c", s.numbers)
	}
}

// TestDerivedID has the ID that printf %s%s POD NAME | sha256sum gives, as a kubelet does.
func TestDerivedID(t *testing.T) {
	const want = "csi-37ace89472d2b21d8c296f99ba2edd08b41f784491f14dbb8b40d5a5579d56e7"
	if got := volume.KubeletID(kubeletPod, "scratch"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
