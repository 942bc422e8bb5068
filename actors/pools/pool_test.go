package pools

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// TestHealthChecksDoNothingWithoutPools: there is nothing to ask, and the class is Ready.
func TestHealthChecksDoNothingWithoutPools(t *testing.T) {
	inPools(t, func(h *testPools) { h.addClass("fast", nil) }, func(h *testPools) {
		h.pass(24 * time.Hour)
		if got := h.class("fast").Status.State; got != v1alpha1.ClassReady {
			h.Errorf("the class is %s", got)
		}
		if n := h.kube.patched("PoolClass"); n > 2 {
			h.Errorf("%d patches of a class in which nothing happens", n)
		}
	})
}

// TestPoolIsConfiguredImportedAndReady: the states come in this order.
func TestPoolIsConfiguredImportedAndReady(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast").hangs = make(chan struct{})
	}, func(h *testPools) {
		a := h.arrays["https://a"]
		h.wantState("a", v1alpha1.PoolConfiguring, v1alpha1.ConditionReachable, "NotYet")
		hold := make(chan struct{})
		a.change(func(a *testArray) { a.holdsList = hold; close(a.hangs); a.hangs = nil })
		h.pass(0)
		h.wantState("a", v1alpha1.PoolImporting, v1alpha1.ConditionConfigured, "Configured")
		close(hold)
		h.pass(0)
		h.wantState("a", v1alpha1.PoolReady, v1alpha1.ConditionReady, "Ready")
		if got, want := h.states.all("a"), "[Configuring Importing Ready]"; got != want {
			h.Errorf("the states were %s, want %s", got, want)
		}
		p := h.pool("a")
		if p.Status.Version != "22.06-sp1-123" || p.Status.VPSA.PoolID != "pool-00000001" || p.Status.VPSA.IQN != "iqn.2011-04.com.zadara:a" ||
			p.Status.VPSA.Portal != "10.0.0.9:3260" || p.Status.ObservedGeneration != 1 || len(p.Finalizers) != 1 {
			h.Errorf("the pool is %+v", p)
		}
		if c := h.class("fast").Status; c.Counters.Pools != 1 || c.Counters.Ready != 1 {
			h.Errorf("the class is %+v", c)
		}
		var secret corev1.Secret
		name := client.ObjectKey{Namespace: "katbox-chap", Name: p.Status.VPSA.CHAPSecretName}
		if err := h.kube.Get(h.Context(), name, &secret); err != nil {
			h.Fatal(err)
		}
		if string(secret.Data["node.session.auth.username"]) != "user" || string(secret.Data["node.session.auth.password"]) != "secret" {
			h.Errorf("the nodes' Secret: %+v", secret.Data)
		}
		h.wantEvents("Configured: the recycle bin is off", 1)
		h.wantEvents("a Normal Ready", 1)
	})
}

// TestArrayWithoutAVersion: it has no such request, its controllers tell a number of their own, and it is Ready.
func TestArrayWithoutAVersion(t *testing.T) {
	inPools(t, func(h *testPools) {
		a := h.addFake("a", "fast", fakevpsa.Options{})
		if _, err := a.Fail(fakevpsa.Fault{Kind: fakevpsa.HTML, Status: 404, Path: "/api/vpsaversion.json"}); err != nil {
			h.Fatal(err)
		}
		if err := a.Change(func(s *fakevpsa.Settings) { s.Software = "0.0.09-05.1--77.7" }); err != nil {
			h.Fatal(err)
		}
	}, func(h *testPools) {
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, v1alpha1.ConditionCompatible, "VersionUnknown")
		if version := h.pool("a").Status.Version; version != "0.0.09-05.1--77.7" {
			h.Errorf("the version is %q", version)
		}
	})
}

// TestPoolThatDoesNotFitIsIncompatible until it does.
func TestPoolThatDoesNotFitIsIncompatible(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addPool("old", "fast").health.Version = "20.12-sp1"
		two := h.addPool("two", "fast")
		two.health.Pools = append(two.health.Pools, array.Pool{ID: "pool-00000002"})
	}, func(h *testPools) {
		h.wantState("old", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "VersionTooOld")
		h.wantState("two", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "SeveralPools")
		h.wantEvents("old Warning Incompatible: its version is 20.12-sp1", 1)
		if a := h.arrays["https://old"]; a.called("Configure") > 0 || a.called("Volumes") > 0 {
			h.Error("an array that does not fit was changed or listed")
		}
		h.arrays["https://old"].change(func(a *testArray) { a.health.Version = "21.01" })
		h.changePool("two", func(p *v1alpha1.Pool) { p.Spec.VPSA.Pool = "pool-00000002" })
		h.pass(2 * testInterval)
		h.wantState("old", v1alpha1.PoolReady, "", "")
		h.wantState("two", v1alpha1.PoolReady, "", "")
		if id := h.pool("two").Status.VPSA.PoolID; id != "pool-00000002" {
			h.Errorf("it uses %s", id)
		}
	})
}

// TestPoolWhoseArrayCannotBeAskedIsUnreachable, with a word for why.
func TestPoolWhoseArrayCannotBeAskedIsUnreachable(t *testing.T) {
	for _, tc := range []struct {
		reason string
		fails  error
	}{
		{"InvalidCredentials", array.ErrCredentials}, {"TLSError", array.ErrTLS}, {"Timeout", array.ErrTimeout},
		{"BadAnswer", array.ErrBadAnswer},
		{"NetworkError", fmt.Errorf("%w: %w", array.ErrUnreachable, errNotReached)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			inPools(t, func(h *testPools) { h.addPool("a", "fast").fails = tc.fails }, func(h *testPools) {
				h.wantState("a", v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, tc.reason)
				h.wantEvents("a Warning Unreachable", 1)
				h.arrays["https://a"].change(func(a *testArray) { a.fails = nil })
				h.pass(2 * testInterval)
				h.wantState("a", v1alpha1.PoolReady, "", "")
			})
		})
	}
}

// TestHangingArrayHoldsNothingUp: the pool is Unreachable, and questions are answered.
func TestHangingArrayHoldsNothingUp(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast").hangs = make(chan struct{}) }, func(h *testPools) {
		if _, err := h.use("a"); err == nil {
			h.Error("the pool can be used before the array has answered")
		}
		h.pass(probeBound)
		h.wantState("a", v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "Timeout")
	})
}

// TestPoolWithoutItsSecretIsUnreachable, and the Secret is read again.
func TestPoolWithoutItsSecretIsUnreachable(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addPool("a", "fast")
		if err := h.kube.Delete(h.Context(), &corev1.Secret{ObjectMeta: metaIn("katbox", "a")}); err != nil {
			h.Fatal(err)
		}
	}, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "InvalidCredentials")
		h.setToken("a", "token-a")
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
	})
}

// TestNewTokenIsUsedFromTheNextProbeOn: the array takes the old one no more.
func TestNewTokenIsUsedFromTheNextProbeOn(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		h.setToken("a", "new")
		h.arrays["https://a"].change(func(a *testArray) { a.token = "new" })
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
		h.wantEvents("Unreachable", 0)
		if got, want := h.arrays["https://a"].used(), "[token-a new]"; got != want {
			h.Errorf("clients were made with %s, want %s", got, want)
		}
	})
}

// TestOneFailedProbeIsNotUnreachable: the second one is, which comes soon; and the next answer ends it
// without configuring or importing anew.
func TestOneFailedProbeIsNotUnreachable(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		a := h.arrays["https://a"]
		a.change(func(a *testArray) { a.fails = array.ErrTimeout })
		probes := a.called("Health")
		for a.called("Health") == probes {
			h.pass(time.Second)
		}
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if _, err := h.use("a"); err != nil {
			h.Errorf("after one failed probe: %v", err)
		}
		h.pass(testInterval / 4)
		h.wantState("a", v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "Timeout")
		if _, err := h.use("a"); err == nil {
			h.Error("an unreachable pool can be used")
		}
		configured, listed := a.called("Configure"), a.called("Volumes")
		a.change(func(a *testArray) { a.fails = nil })
		h.pass(testInterval * 6 / 5)
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if a.called("Configure") != configured {
			h.Error("it was configured again")
		}
		if a.called("Volumes") > listed+1 {
			h.Error("it was imported again")
		}
	})
}

// TestCallWithoutAnswerIsConfirmedByOneProbe, at once.
func TestCallWithoutAnswerIsConfirmedByOneProbe(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		e := &env.Environment{System: h.controller.System}
		e.Doubt("a", array.ErrTimeout)
		h.pass(0)
		h.wantState("a", v1alpha1.PoolReady, "", "")
		h.arrays["https://a"].change(func(a *testArray) { a.fails = array.ErrTimeout })
		e.Doubt("a", array.ErrTimeout)
		h.pass(0)
		h.wantState("a", v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "Timeout")
	})
}

// TestAnotherArrayAtTheSameAddressIsNotThisOne: its volumes are others.
func TestAnotherArrayAtTheSameAddressIsNotThisOne(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		h.arrays["https://a"].change(func(a *testArray) { a.health.IQN = "iqn.2011-04.com.zadara:other" })
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "NotThisArray")
		if _, err := h.use("a"); err == nil {
			h.Error("another array can be used in its place")
		}
		h.stop() // the next run knows it too
		h.start()
		h.wantState("a", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "NotThisArray")
	})
}

// TestChangedPoolIsConfiguredAndImportedAnew.
func TestChangedPoolIsConfiguredAndImportedAnew(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		h.changePool("a", func(p *v1alpha1.Pool) { p.Spec.DisplayName = "new" })
		h.wantState("a", v1alpha1.PoolReady, "", "")
		a := h.arrays["https://a"]
		if a.called("Configure") != 2 || a.called("Volumes") != 2 || h.pool("a").Status.ObservedGeneration != 2 {
			h.Errorf("configured %d times, listed %d times, want twice", a.called("Configure"), a.called("Volumes"))
		}
	})
}

// TestStatusIsWrittenWhenItChanges, and every few minutes for the time of the last look.
func TestStatusIsWrittenWhenItChanges(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		before := h.kube.patched("Pool")
		h.pass(time.Hour)
		if n := h.kube.patched("Pool") - before; n < 10 || n > 13 {
			h.Errorf("%d patches in an hour in which nothing changes", n)
		}
		if n := h.arrays["https://a"].called("Health"); n < 60 || n > 85 {
			h.Errorf("%d probes in an hour", n)
		}
		if n := h.arrays["https://a"].called("Volumes"); n < 10 || n > 13 {
			h.Errorf("the volumes were listed %d times in an hour", n)
		}
	})
}

// TestStatusThatCannotBeWrittenIsWrittenLater.
func TestStatusThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		h.addPool("a", "fast")
		h.kube.refusing(func(kubeKey) error { return errNotReached })
	}, func(h *testPools) {
		if got := h.pool("a").Status.State; got != "" {
			h.Errorf("the state is %s", got)
		}
		h.kube.refusing(nil)
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if got := h.class("fast").Status.State; got != v1alpha1.ClassReady {
			h.Errorf("the class is %s", got)
		}
	})
}

// TestPanicInAWorkerIsAProbeWithoutAnswer, and the pool goes on.
func TestPanicInAWorkerIsAProbeWithoutAnswer(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast").panics = true }, func(h *testPools) {
		h.wantState("a", v1alpha1.PoolUnreachable, v1alpha1.ConditionReachable, "NetworkError")
		h.arrays["https://a"].change(func(a *testArray) { a.panics = false })
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
	})
}

// TestSilentAPIServerMakesNoPoolUnreachable: the token that was read last still holds.
func TestSilentAPIServerMakesNoPoolUnreachable(t *testing.T) {
	inPools(t, func(h *testPools) { h.addPool("a", "fast") }, func(h *testPools) {
		h.kube.refusingReads(errNotReached)
		h.pass(5 * testInterval)
		if _, err := h.use("a"); err != nil {
			h.Error(err)
		}
		h.kube.refusingReads(nil)
		h.wantEvents("Unreachable", 0)
	})
}

// TestUninstallingDeletesNothing: a later run finds all as it was, and imports nothing.
func TestUninstallingDeletesNothing(t *testing.T) {
	inPools(t, func(h *testPools) {
		h.addClass("fast", nil)
		a := h.addPool("a", "fast")
		h.addOurs(a, "pvc-1")
	}, func(h *testPools) {
		h.stop()
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if !h.exists(&v1alpha1.PoolVolume{}, "pvc-1") || len(h.arrays["https://a"].volumes) != 1 || !h.exists(&v1alpha1.PoolClass{}, "fast") {
			h.Error("something is gone")
		}
		configured, before := h.arrays["https://a"].called("Configure"), h.states.all("a")
		h.start()
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if h.arrays["https://a"].called("Configure") != configured {
			h.Error("the next run configured it anew")
		}
		if after := h.states.all("a"); after != before {
			h.Errorf("the states were %s, and then %s", before, after)
		}
		h.wantEvents("Imported: imported 1 volumes", 1)
	})
}
