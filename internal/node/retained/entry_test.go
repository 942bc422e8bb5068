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
	x := &Index{}
	ids := []string{"v", kubeletID, strings.ToUpper(kubeletID), kubeletID[:67], kubeletID + "0", "csi-" + strings.Repeat("x", 64),
		"", "\x00", strings.Repeat("i", volume.MaxNameLength)}
	pods := []string{"", "p", kubeletPod, strings.ToUpper(kubeletPod), kubeletPod[1:], kubeletPod + "0", strings.Repeat("-", 36),
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
				x.Put(want)
				if got, _ := x.Look(want.ID); !reflect.DeepEqual(got.Record, want) {
					t.Fatalf("%+v came back as %+v", want, got.Record)
				}
				if !x.Has(want.Place()) || x.Has(volume.Place{Pod: want.Pod, ID: "x" + want.ID}) || x.Len() != 1 {
					t.Fatalf("%s is not found, or another is", want.ID)
				}
				x.Forget(want.ID)
			}
		}
	}
	checkEmpty(t, x)
}

// checkEmpty reports whatever an index keeps that has no volumes.
func checkEmpty(t *testing.T, x *Index) {
	t.Helper()
	for what, left := range map[string]int{
		"volumes": x.Len(), "listed volumes": x.listed, "groups": len(x.groups), "fates": len(x.fates), "texts of holds": len(x.holds),
		"lists": len(x.lists), "namespaces": len(x.namespaces), "namespaces that are told apart": len(x.tenants.all), "classes": len(x.classes),
		"postponed volumes": x.postponed.Len(), "volumes to be measured": len(x.unmeasured),
		"volumes to be archived": len(x.toArchive.blocks), "unconfirmed volumes": x.toArchive.unanswered + x.toArchive.denied,
		"bytes":               int(x.bytes),
		"bytes of namespaces": int(x.tenants.total.Bytes), "inodes of namespaces": int(x.tenants.total.Inodes),
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

// TestVolumeTakesLittle: with one more field an entry, or an owner, would take the next larger size in which Go allocates.
func TestVolumeTakesLittle(t *testing.T) {
	if e, o := unsafe.Sizeof(entry{}), unsafe.Sizeof(owner{}); e != 144 || o != 64 {
		t.Errorf("an entry has %d bytes and an owner %d, want 144 and 64", e, o)
	}
	job := strings.Repeat("j", 37)
	r := volume.Record{ID: kubeletID, Pod: kubeletPod, PodName: job + "-12345", Project: math.MaxUint32, Published: epoch,
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: kubeletPod, Kind: "Job", Name: job, UID: kubeletPod, Job: job}}
	x := &Index{}
	x.Put(r.Retain(epoch, time.Hour))
	e := x.find(kubeletID)
	if name := unsafe.StringData(e.podName); e.rare != nil || unsafe.StringData(e.owner.name) != name ||
		unsafe.StringData(e.owner.job) != name {
		t.Errorf("%+v: want nothing rare, and names that are parts of the pod's", e)
	}
}

// TestEachVolumeIsDifferent: hostile or generated names, limits and reasons come back, and nothing of them stays.
func TestEachVolumeIsDifferent(t *testing.T) {
	const volumes = 3000
	x := &Index{}
	named := func(i int) volume.Record {
		r := volume.Record{ID: volume.ID(fmt.Sprint("csi-", i)), Pod: kubeletPod, PodName: "p", Namespace: fmt.Sprint("space-", i),
			VolumeName: fmt.Sprint("volume-", i), ServiceAccount: fmt.Sprint("account-", i), Published: epoch.Local(),
			Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: fmt.Sprint("uid-", i), Kind: "Job", Name: "p",
				UID: "00000000-0000-0000-0000-000000000000"},
			Terms: volume.Terms{Lifespan: time.Hour, LifespanSucceeded: time.Minute, Limit: volume.Size{Bytes: int64(i), Inodes: int64(i)}},
		}.Retain(epoch, time.Hour)
		r.Hold = volume.Hold{Kind: volume.Pinned, For: time.Duration(i), Why: fmt.Sprint("because of ", i)}
		return r
	}
	for i := range volumes {
		x.Put(named(i))
	}
	for i := range volumes {
		if got, _ := x.Look(named(i).ID); !reflect.DeepEqual(got.Record, named(i)) {
			t.Fatalf("%+v came back as %+v", named(i), got.Record)
		}
		x.Forget(named(i).ID)
	}
	checkEmpty(t, x)
}
