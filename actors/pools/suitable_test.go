package pools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// refusing is an array that refuses volumes.
func refusing(text string) fakevpsa.Fault {
	return fakevpsa.Fault{Kind: fakevpsa.Refuse, Method: "POST", Path: "/api/volumes.json", Status: 7, Text: text}
}

// noPassword is what an array may say to a volume that is to be encrypted.
var noPassword = refusing("Encryption password was never set on this VPSA")

func (h *testPools) fail(a *fakevpsa.Array, f fakevpsa.Fault) (id int) {
	h.Helper()
	id, err := a.Fail(f)
	if err != nil {
		h.Fatal(err)
	}
	return id
}

// make makes a volume, and returns in which pool.
func (h *testPools) make(n pools.NewVolume) (pool string, err error) {
	h.Helper()
	n.Required, n.Claim = gib, pools.Claim{Namespace: "ns", Name: n.Name}
	v, err := h.controller.CreateVolume(context.Background(), n)
	return v.Pool, err
}

// isSuitable fails the test unless the condition of a pool has a status, a reason and a text.
func (h *testPools) isSuitable(pool string, status metav1.ConditionStatus, reason, text string) {
	h.Helper()
	c := meta.FindStatusCondition(h.pool(pool).Status.Conditions, v1alpha1.ConditionSuitable)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		h.Errorf("pool %s: %+v, want %s, %s, %q", pool, c, status, reason, text)
	}
}

// encrypting makes a class that encrypts, with a pool that the allocator takes first, and others.
func encrypting(others ...string) func(h *testPools) {
	return func(h *testPools) {
		h.addClass("fast", func(s *v1alpha1.PoolClassSpec) { s.Allocator, s.VolumeFlags.Encrypt = v1alpha1.Linear, true })
		for i, name := range append([]string{"a"}, others...) {
			h.addFake(name, "fast", fakevpsa.Options{Settings: fakevpsa.Settings{Serial: uint32(i + 1)}})
		}
	}
}

// TestArrayThatRefusesHoldsNoClaim: another array of the class takes the volume, and is asked first for a while.
func TestArrayThatRefusesHoldsNoClaim(t *testing.T) {
	inPools(t, encrypting("b"), func(h *testPools) {
		a := h.fakes["https://a"]
		fault := h.fail(a, noPassword)
		h.isSuitable("a", metav1.ConditionUnknown, "EncryptionNotSeen", "PoolClass fast encrypts volumes")
		for _, name := range []string{"pvc-1", "pvc-2"} {
			if pool, err := h.make(pools.NewVolume{Name: name, Class: "fast"}); err != nil || pool != "b" {
				h.Fatalf("%s was made in %q: %v", name, pool, err)
			}
		}
		h.pass(time.Second)
		if met := a.Faults()[0].Met; met != 1 {
			h.Errorf("the first array was asked %d times", met)
		}
		h.wantState("a", v1alpha1.PoolReady, "", "")
		h.isSuitable("a", metav1.ConditionFalse, "VolumeRefused",
			"the array refuses volumes with the protocol nfs, encrypt: POST volumes of the array https://a: refused")
		h.isSuitable("a", metav1.ConditionFalse, "VolumeRefused", noPassword.Text)
		h.isSuitable("b", metav1.ConditionTrue, "Suitable", "")
		h.wantEvents("a Warning VolumeRefused: the array refuses volumes with the protocol nfs, encrypt: ", 1)

		a.Heal(fault)
		if pool, err := h.make(pools.NewVolume{Name: "pvc-3", Class: "fast"}); err != nil || pool != "b" {
			h.Errorf("made in %q: %v", pool, err)
		}
		h.pass(rules.DeclinedFor)
		if pool, err := h.make(pools.NewVolume{Name: "pvc-4", Class: "fast"}); err != nil || pool != "a" {
			h.Errorf("made in %q: %v", pool, err)
		}
		h.pass(time.Second)
		h.isSuitable("a", metav1.ConditionTrue, "Suitable", "")
		// An encrypted volume proves the password, for a later run too.
		h.stop()
		h.start()
		h.pass(testInterval)
		h.isSuitable("a", metav1.ConditionTrue, "Suitable", "")
	})
}

// TestRefusedByAll is final: nothing is left, and the claim's next call says it again at once. A person who changes the Pool
// wants it to be tried.
func TestRefusedByAll(t *testing.T) {
	inPools(t, encrypting("b"), func(h *testPools) {
		for _, name := range []string{"a", "b"} {
			h.fail(h.fakes["https://"+name], noPassword)
		}
		for range 2 {
			_, err := h.make(pools.NewVolume{Name: "pvc-1", Class: "fast"})
			if !rules.IsFinal(err) || strings.Count(err.Error(), noPassword.Text) != 2 {
				h.Errorf("the error is %v", err)
			}
		}
		h.pass(time.Minute)
		if h.exists(&v1alpha1.PoolVolume{}, "pvc-1") {
			h.Error("the resource is still there")
		}
		h.fakes["https://b"].Heal(0)
		h.changePool("b", func(p *v1alpha1.Pool) { p.Spec.Description = "has a password" })
		h.pass(time.Second)
		if pool, err := h.make(pools.NewVolume{Name: "pvc-1", Class: "fast"}); err != nil || pool != "b" {
			h.Errorf("made in %q: %v", pool, err)
		}
	})
}

// TestRefusedOptionsAreThoseOfOneStorageClass: others of the PoolClass use the array, and nothing that is retained goes.
func TestRefusedOptionsAreThoseOfOneStorageClass(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addFake("a", "fast", fakevpsa.Options{})
	}, func(h *testPools) {
		fault := h.fail(h.fakes["https://a"], refusing("bad readaheadkb"))
		odd := pools.NewVolume{Name: "pvc-1", Class: "fast", Options: map[string]string{"readaheadkb": "7"}}
		if _, err := h.make(odd); !rules.IsFinal(err) {
			h.Errorf("the error is %v", err)
		}
		h.pass(time.Second)
		h.isSuitable("a", metav1.ConditionFalse, "VolumeRefused", "the protocol nfs, readaheadkb=7: ")
		h.fakes["https://a"].Heal(fault)
		for _, n := range []pools.NewVolume{{Name: "pvc-2"}, {Name: "pvc-3", Block: true}, {Name: "pvc-4", Protocol: pools.ISCSI}} {
			n.Class = "fast"
			if _, err := h.make(n); err != nil {
				h.Errorf("%s: %v", n.Name, err)
			}
		}
	})
}

// TestVolumeThatIsRefusedHoldsNoOther: the array has refused one claim for what is wrong with that, such as its size. Those
// like it have no other array to go to.
func TestVolumeThatIsRefusedHoldsNoOther(t *testing.T) {
	for name, others := range map[string][]string{"one array": nil, "two": {"b"}} {
		t.Run(name, func(t *testing.T) {
			inPools(t, encrypting(others...), func(h *testPools) {
				for _, a := range h.fakes {
					f := refusing("The capacity is not valid")
					f.Times = 1
					h.fail(a, f)
				}
				if _, err := h.make(pools.NewVolume{Name: "pvc-1", Class: "fast"}); !rules.IsFinal(err) {
					h.Errorf("the error is %v", err)
				}
				if pool, err := h.make(pools.NewVolume{Name: "pvc-2", Class: "fast"}); err != nil || pool != "a" {
					h.Errorf("made in %q: %v", pool, err)
				}
				h.pass(time.Second)
				h.isSuitable("a", metav1.ConditionTrue, "Suitable", "")
			})
		})
	}
}

// TestVolumeThatMayBeMadeYet: an array that gave up waiting for its own work has not refused anything, and may have the volume
// later. No other array gets it.
func TestVolumeThatMayBeMadeYet(t *testing.T) {
	for _, text := range []string{"The request timed out", "Timeout while waiting for the volume", "Internal error"} {
		t.Run(text, func(t *testing.T) {
			inPools(t, encrypting("b"), func(h *testPools) {
				fault := h.fail(h.fakes["https://a"], refusing(text))
				if _, err := h.make(pools.NewVolume{Name: "pvc-1", Class: "fast"}); !errors.Is(err, volume.ErrUncertain) {
					h.Errorf("the error is %v", err)
				}
				h.pass(time.Minute)
				h.fakes["https://a"].Heal(fault)
				h.pass(time.Hour)
				if v := get[v1alpha1.PoolVolume](h, "pvc-1"); v.Spec.PoolName != "a" || v.Status.State != v1alpha1.VolumeReady {
					h.Errorf("it is in %s, %+v", v.Spec.PoolName, v.Status)
				}
				h.isSuitable("a", metav1.ConditionTrue, "Suitable", "")
			})
		})
	}
}

// TestSnapshotThatIsRefused holds its VolumeSnapshot no more than a volume does its claim. A refusal whose outcome is open
// is none.
func TestSnapshotThatIsRefused(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addFake("a", "fast", fakevpsa.Options{})
	}, func(h *testPools) {
		if _, err := h.make(pools.NewVolume{Name: "pvc-1", Class: "fast"}); err != nil {
			h.Fatal(err)
		}
		h.fail(h.fakes["https://a"], fakevpsa.Fault{
			Kind: fakevpsa.Refuse, Method: "POST", Path: "/api/consistency_groups/*/snapshots.json", Status: 7, Text: "no license", Times: 1,
		})
		if _, err := h.controller.CreateSnapshot(context.Background(), "snapshot-1", "pvc-1"); !rules.IsFinal(err) {
			h.Errorf("the error is %v", err)
		}
		h.fail(h.fakes["https://a"], refusing("try again"))
		if _, err := h.make(pools.NewVolume{Name: "pvc-2", Class: "fast"}); !errors.Is(err, volume.ErrBusy) {
			h.Errorf("the error is %v", err)
		}
		h.pass(time.Minute)
		h.isSuitable("a", metav1.ConditionTrue, "Suitable", "")
	})
}

// TestClassThatNeedsISCSI: an array without a portal takes what is reached over NFS.
func TestClassThatNeedsISCSI(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", func(s *v1alpha1.PoolClassSpec) { s.Protocol, s.Allocator = v1alpha1.ISCSI, v1alpha1.Linear })
		h.addPool("a", "fast").health.Portal = ""
		h.addPool("b", "fast")
	}, func(h *testPools) {
		h.isSuitable("a", metav1.ConditionFalse, "NoISCSI", "PoolClass fast has the protocol iscsi")
		h.isSuitable("b", metav1.ConditionTrue, "Suitable", "")
		if pool, err := h.make(pools.NewVolume{Name: "pvc-1", Class: "fast"}); err != nil || pool != "b" {
			h.Errorf("made in %q: %v", pool, err)
		}
		if pool, err := h.make(pools.NewVolume{Name: "pvc-2", Class: "fast", Protocol: pools.NFS}); err != nil || pool != "a" {
			h.Errorf("made in %q: %v", pool, err)
		}
	})
}

// TestRefusalsAreBounded: users' StorageClasses have options of all sorts.
func TestRefusalsAreBounded(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addFake("a", "fast", fakevpsa.Options{})
	}, func(h *testPools) {
		h.fail(h.fakes["https://a"], refusing(strings.Repeat("long ", 1000)))
		for i := range 2 * rules.MostDeclines {
			n := pools.NewVolume{Name: "pvc-1", Class: "fast", Options: map[string]string{"x": strings.Repeat("y", i+1)}}
			if _, err := h.make(n); !rules.IsFinal(err) {
				h.Fatal(err)
			}
		}
		h.pass(time.Second)
		c := meta.FindStatusCondition(h.pool("a").Status.Conditions, v1alpha1.ConditionSuitable)
		if c == nil || len(c.Message) > 2000 || strings.Count(c.Message, "the array refuses") != 3 {
			h.Errorf("the condition is %+v", c)
		}
	})
}
