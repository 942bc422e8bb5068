package retained

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/volume"
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
	if len(table.groups.numbers) != 0 || len(table.spaces.numbers) != 0 || len(table.byHash) != 0 || table.length != 0 {
		t.Errorf("%d groups, %d hashes and %d volumes are left", len(table.groups.numbers), len(table.byHash), table.length)
	}
}

// TestVolumeTakes128Bytes: with one more field, some volumes would take 192. An owner adds nothing
// to a kubelet's volume with a common name.
func TestVolumeTakes128Bytes(t *testing.T) {
	if e, m := unsafe.Sizeof(entry{}), unsafe.Sizeof(text{}); e != 64 || m != 64 {
		t.Errorf("an entry has %d bytes and what follows %d, want 64 of each", e, m)
	}
	job := strings.Repeat("j", 43)
	for name, tt := range map[string]struct {
		podName string
		id      volume.ID
		owner   volume.Owner
	}{
		"any ID":         {strings.Repeat("n", 36), kubeletID, volume.Owner{}},
		"a kubelet's ID": {strings.Repeat("n", 68), "", volume.Owner{}},
		"owned": {job + "-12345", "", volume.Owner{
			Verdict: volume.Confirmed, NamespaceUID: kubeletPod, Kind: "Job", Name: job, UID: kubeletPod, Job: job,
		}},
	} {
		r := volume.Record{ID: tt.id, Pod: kubeletPod, Namespace: strings.Repeat("s", 63), PodName: tt.podName, Owner: tt.owner,
			VolumeName: strings.Repeat("v", 63), ServiceAccount: strings.Repeat("a", 253), Published: time.Unix(1<<35-1, 0)}.Retain(epoch, time.Hour)
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
	var s interned[string]
	a, b := s.use("a"), s.use("b")
	if s.use("a") != a || a == b || *s.value(a) != "a" || *s.value(b) != "b" {
		t.Errorf("a is %d, b is %d", a, b)
	}
	s.drop(a)
	if *s.value(a) != "a" {
		t.Error("a is gone and has a user")
	}
	s.drop(a)
	if c := s.use("c"); c != a || *s.value(c) != "c" || *s.value(b) != "b" {
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
