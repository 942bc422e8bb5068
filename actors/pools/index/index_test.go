package index

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

func aVolume(name, pool string, version int) *v1alpha1.PoolVolume {
	return &v1alpha1.PoolVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)},
		Spec: v1alpha1.PoolVolumeSpec{
			ClassName: "fast", PoolName: pool, Size: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, Protocol: v1alpha1.NFS,
		},
		Status: v1alpha1.PoolVolumeStatus{State: v1alpha1.VolumeReady, ID: "volume-" + name, Capacity: resource.MustParse("1Gi")},
	}
}

func TestIndexIgnoresWhatIsOlderThanATasksOwnWord(t *testing.T) {
	x := New()
	grown := aVolume("a", "p", 12)
	grown.Status.Capacity = resource.MustParse("2Gi")
	x.See(&poolmessages.Seen{Object: grown, ByTask: true})
	if x.See(&poolmessages.Seen{Object: aVolume("a", "p", 11)}) {
		t.Error("a late watch event was taken over")
	}
	if got := x.volumes["a"].size; got != 2<<30 {
		t.Errorf("the size is %d", got)
	}
}

func TestIndexKeepsADeletedResourceDeleted(t *testing.T) {
	x := New()
	x.See(&poolmessages.Seen{Object: aVolume("a", "p", 10)})
	x.Drop(&poolmessages.Gone{Kind: poolmessages.PoolVolumeKind, Name: "a", ByTask: true})
	late := aVolume("a", "p", 11)
	late.DeletionTimestamp = &metav1.Time{}
	if x.See(&poolmessages.Seen{Object: aVolume("a", "p", 10)}) || x.See(&poolmessages.Seen{Object: late}) || x.volumes["a"] != nil {
		t.Error("a late watch event brought a deleted volume back")
	}
	x.See(&poolmessages.Seen{Object: aVolume("a", "p", 20), ByTask: true})
	x.Drop(&poolmessages.Gone{Kind: poolmessages.PoolVolumeKind, Name: "a"})
	if x.volumes["a"] == nil {
		t.Error("the late end of the first volume took the second one away")
	}
	x.Drop(&poolmessages.Gone{Kind: poolmessages.PoolVolumeKind, Name: "a"})
	if x.volumes["a"] != nil || len(x.deleted) != 0 || len(x.pools) != 0 {
		t.Errorf("after the end of the second volume: %v, %v, %v", x.volumes, x.deleted, x.pools)
	}
}

func TestIndexCountsWhatAPoolHas(t *testing.T) {
	x := New()
	external := aVolume("b", "p", 2)
	external.Spec.Management = v1alpha1.External
	x.See(&poolmessages.Seen{Object: aVolume("a", "p", 1)})
	x.See(&poolmessages.Seen{Object: external})
	x.See(&poolmessages.Seen{Object: &v1alpha1.PoolSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.PoolSnapshotSpec{VolumeName: "a", PoolName: "p"},
	}})
	x.See(&poolmessages.Seen{Object: &v1alpha1.PoolAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a.n"}, Spec: v1alpha1.PoolAttachmentSpec{VolumeName: "a", NodeName: "n", PoolName: "p"},
	}})
	want := poolmessages.PoolCounts{Managed: 1, External: 1, Attachments: 1, Snapshots: 1, ManagedSnapshots: 1}
	if got := x.pools["p"].counts; got != want {
		t.Errorf("the pool has %+v, want %+v", got, want)
	}
	external.Spec.Management = v1alpha1.Managed // imported
	external.ResourceVersion = "3"
	x.See(&poolmessages.Seen{Object: external.DeepCopy()})
	x.Drop(&poolmessages.Gone{Kind: poolmessages.PoolSnapshotKind, Name: "s"})
	x.Drop(&poolmessages.Gone{Kind: poolmessages.PoolAttachmentKind, Name: "a.n"})
	if got, want := x.pools["p"].counts, (poolmessages.PoolCounts{Managed: 2}); got != want {
		t.Errorf("afterwards the pool has %+v, want %+v", got, want)
	}
}

// TestIndexMovesWhatHasTheNameOfAnother: the watch was away when the first one was deleted.
func TestIndexMovesWhatHasTheNameOfAnother(t *testing.T) {
	x := New()
	for i, of := range []string{"a", "b"} {
		meta := metav1.ObjectMeta{Name: "s", ResourceVersion: strconv.Itoa(i + 1)}
		x.See(&poolmessages.Seen{Object: &v1alpha1.PoolSnapshot{ObjectMeta: meta,
			Spec: v1alpha1.PoolSnapshotSpec{VolumeName: of, PoolName: "p" + of}}})
		x.See(&poolmessages.Seen{Object: &v1alpha1.PoolAttachment{ObjectMeta: meta,
			Spec: v1alpha1.PoolAttachmentSpec{VolumeName: of, PoolName: "p" + of}}})
	}
	if len(x.snapshotsOf["a"])+len(x.attachmentsOf["a"]) != 0 || len(x.snapshotsOf["b"]) != 1 || len(x.attachmentsOf["b"]) != 1 {
		t.Errorf("snapshots %v, attachments %v", x.snapshotsOf, x.attachmentsOf)
	}
	want := poolmessages.PoolCounts{Attachments: 1, Snapshots: 1, ManagedSnapshots: 1}
	if got := x.Counts("pb"); got != want || x.Counts("pa") != (poolmessages.PoolCounts{}) {
		t.Errorf("the pools have %+v and %+v", x.Counts("pa"), got)
	}
}

func TestIndexPages(t *testing.T) {
	x := New()
	for i := range 10 {
		x.See(&poolmessages.Seen{Object: aVolume(fmt.Sprint("v", i), "p", 1)})
	}
	var all []string
	for page := (pools.Page{Limit: 3}); ; {
		got := x.VolumePage("", page)
		for _, v := range got.Volumes {
			all = append(all, v.ID)
		}
		if !got.More {
			break
		}
		page.After = all[len(all)-1]
		if len(all) == 6 { // between the pages one goes and one comes
			x.Drop(&poolmessages.Gone{Kind: poolmessages.PoolVolumeKind, Name: "v7"})
			x.See(&poolmessages.Seen{Object: aVolume("v61", "p", 1)})
		}
	}
	if got, want := fmt.Sprint(all), "[v0 v1 v2 v3 v4 v5 v6 v61 v8 v9]"; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
}

// TestIndexIsSmall: 200,000 volumes take less than 100 MiB. A quarter of them is enough to tell.
func TestIndexIsSmall(t *testing.T) {
	const volumes = 50_000
	x, before := New(), heapInUse() // what earlier tests leave may still go, which only makes the difference smaller
	v := aVolume("", "", 1)
	for i := range volumes {
		v.Name, v.Spec.PoolName = fmt.Sprintf("pvc-%08x-0000-4000-8000-%012x", i, i), fmt.Sprint("pool-", i%20)
		v.Status.ID = fmt.Sprintf("volume-%08x", i)
		x.See(&poolmessages.Seen{Object: v})
	}
	if got := heapInUse() - before; got > 25<<20 {
		t.Errorf("%d volumes take %d MiB", volumes, got>>20)
	} else {
		t.Logf("%d volumes take %d MiB", volumes, got>>20)
	}
	runtime.KeepAlive(x)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // less than 2^63
}
