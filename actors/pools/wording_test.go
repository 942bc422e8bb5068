package pools

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
)

// TestPoolsOnNodesAreNoArrays: what people read of them says so.
func TestPoolsOnNodesAreNoArrays(t *testing.T) {
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one := nodeWith(disk1)
		h.connects("n1", one)
		told := 0
		read := func(doing string, err error) {
			h.Helper()
			if err == nil {
				h.Errorf("%s: no error", doing)
				return
			}
			told++
			if strings.Contains(err.Error(), "array") {
				h.Errorf("%s: %v", doing, err)
			}
		}
		size := int64(10)
		create := func(name string, gib int64) error {
			_, err := h.local().CreateVolume(h.Context(), newLocal(name, gib, []string{disk1}))
			return err
		}
		h.bindLocal("v", 10, []string{disk1})
		for _, kind := range []error{
			volume.ErrNoSpace, volume.ErrUncertain, volume.ErrBusy, volume.ErrConflict, volume.Invalid("size", "is odd"), volume.ErrNotFound,
			pools.ErrInUse, errors.New("EIO"),
		} {
			for _, method := range []string{"Volume", "CreateVolume", "GrowVolume", "DeleteVolume", "CreateSnapshot"} {
				one.Fail(fakepools.Method(kind, method))
				switch method {
				case "Volume", "CreateVolume":
					if err := create(fmt.Sprintf("other-%d", told), 1); err != nil || !errors.Is(kind, volume.ErrNotFound) {
						read(method+" "+kind.Error(), err)
					}
				case "GrowVolume":
					size++
					_, err := h.local().GrowVolume(h.Context(), "v", size*gib, 0)
					read(method+" "+kind.Error(), err)
				case "DeleteVolume":
					if err := h.local().DeleteVolume(h.Context(), "none"); err != nil {
						read(method+" "+kind.Error(), err)
					}
				case "CreateSnapshot":
					_, err := h.local().CreateSnapshot(h.Context(), fmt.Sprintf("s-%d", told), "v")
					read(method+" "+kind.Error(), err)
				}
				one.Fail(nil)
				h.pass(testInterval)
			}
		}
		read("more than there is", create("large", 500))
		_, err := h.local().GrowVolume(h.Context(), "v", 500*gib, 0)
		read("grow to more than there is", err)
		one.Use(disk1, "v", true)
		read("delete what is used", h.local().DeleteVolume(h.Context(), "v"))
		one.Use(disk1, "v", false)

		h.bindLocal("lost", 1, []string{disk1})
		one.Drop(disk1, "lost")
		h.pass(time.Hour)
		if message := get[v1alpha1.PoolVolume](h, "lost").Status.Message; strings.Contains(message, "array") || message == "" {
			h.Errorf("the PoolVolume of a volume that is gone: %q", message)
		}
		h.add(&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: v1alpha1.PoolSpec{
			ClassName: "nvme", Local: &v1alpha1.LocalPool{UUID: disk1},
		}})
		h.pass(2 * testInterval)
		h.wantState("second", v1alpha1.PoolIncompatible, v1alpha1.ConditionCompatible, "SamePool")
		h.remove(&v1alpha1.Pool{}, poolOf(disk1))
		h.pass(2 * testInterval)
		h.controller.NodeAway("n1", one)
		h.pass(5 * testInterval)
		read("a node that is away", create("away", 5))
		h.connects("n1", one)
		h.pass(2 * testInterval)

		for _, text := range h.events.list() {
			if strings.Contains(text, "array") {
				h.Errorf("the Event %s", text)
			}
		}
		for _, name := range []string{poolOf(disk1), "second"} {
			for _, c := range h.pool(name).Status.Conditions {
				if strings.Contains(c.Message, "array") {
					h.Errorf("Pool %s: %s: %s", name, c.Type, c.Message)
				}
			}
		}
		if told < 20 {
			h.Errorf("only %d errors", told)
		}
	})
}
