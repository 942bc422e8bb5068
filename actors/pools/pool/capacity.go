package pool

import (
	"fmt"
	"slices"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// modeOf is the array's own mode; where it has none, thresholds of the free share decide.
func modeOf(on array.Pool, t v1alpha1.CapacityThresholds) array.Mode {
	if slices.Contains(rules.Modes, on.Mode) {
		return on.Mode
	}
	if on.Total <= 0 {
		return array.Normal
	}
	free := float64(on.Available) / float64(on.Total)
	switch {
	case free < rules.ParseShare(t.Emergency, 0.05):
		return array.Emergency
	case free < rules.ParseShare(t.Protected, 0.1):
		return array.Protected
	case free < rules.ParseShare(t.Alert, 0.2):
		return array.Alert
	}
	return array.Normal
}

// capacityVerdict reports whether a pool takes new volumes as far as its room goes.
func capacityVerdict(mode array.Mode, on array.Pool, kind pools.Kind) verdict {
	if mode == array.Normal {
		return good("Normal")
	}
	then := "; it takes no new volumes"
	if kind == pools.KindLocal {
		then = "; it takes new volumes as far as it has room that is not promised"
	}
	return bad("Mode"+capitalized(string(mode)), fmt.Sprintf("the capacity mode is %s: %d of %d GiB are free%s",
		mode, on.Available>>30, on.Total>>30, then))
}

func capitalized(s string) string { return string(s[0]-'a'+'A') + s[1:] }

func capacityOf(on array.Pool, mode array.Mode) v1alpha1.Capacity {
	return v1alpha1.Capacity{
		Total: rules.Quantity(on.Total), Available: rules.Quantity(on.Available), Provisioned: rules.Quantity(on.Provisioned),
		Mode: v1alpha1.CapacityMode(mode),
	}
}
