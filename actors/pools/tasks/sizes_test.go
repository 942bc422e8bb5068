package tasks

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

const oneGiB = int64(1) << 30

// TestSizesAreRoundedToTheUnitOfTheKind: a VPSA counts in GiB, a pool on a node in MiB.
func TestSizesAreRoundedToTheUnitOfTheKind(t *testing.T) {
	for _, test := range []struct {
		kind            pools.Kind
		required, limit int64
		source, want    array.Size // 0: refused
	}{
		{pools.KindArray, 0, 0, 0, array.GiB},
		{pools.KindArray, 1, 0, 3 * array.GiB, 3 * array.GiB},
		{pools.KindArray, oneGiB + 1, 2*oneGiB - 1, 0, 0},
		{pools.KindLocal, 0, 0, 0, array.MiB},
		{pools.KindLocal, 1<<20 + 1, 2 << 20, 0, 2 * array.MiB},
		{pools.KindLocal, 1<<20 + 1, 2<<20 - 1, 0, 0},
		{pools.KindLocal, 1, 0, 3*array.MiB + 1, 4 * array.MiB},
	} {
		var from *source
		if test.source > 0 {
			from = &source{size: test.source}
		}
		got, err := sizeOf(pools.NewVolume{Kind: test.kind, Required: test.required, Limit: test.limit}, from)
		if test.want == 0 && !errors.Is(err, pools.ErrOutOfRange) || test.want > 0 && (err != nil || got != test.want) {
			t.Errorf("%+v: %s, %v", test, got, err)
		}
	}
}

func TestArrayIsAskedForWholeUnits(t *testing.T) {
	for protocol, want := range map[v1alpha1.Protocol]array.Size{
		v1alpha1.NFS: 2 * array.GiB, v1alpha1.ISCSI: 2 * array.GiB, v1alpha1.Local: 1025 * array.MiB,
	} {
		v := &v1alpha1.PoolVolume{Spec: v1alpha1.PoolVolumeSpec{Protocol: protocol, Size: *resource.NewQuantity(oneGiB+1, resource.BinarySI)}}
		if got := sizeFor(v); got != want {
			t.Errorf("%s: %s, want %s", protocol, got, want)
		}
	}
}
