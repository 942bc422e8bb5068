package pools

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// modes are all modes, from the best to the worst.
var modes = []array.Mode{array.Normal, array.Alert, array.Protected, array.Emergency}

// worse returns the worse one of two modes.
func worse(a, b array.Mode) array.Mode {
	if slices.Index(modes, b) > slices.Index(modes, a) {
		return b
	}
	return a
}

// modeOf is the array's own mode; where it has none, thresholds of the free share decide.
func modeOf(on array.Pool, t v1alpha1.CapacityThresholds) array.Mode {
	if slices.Contains(modes, on.Mode) {
		return on.Mode
	}
	if on.Total <= 0 {
		return array.Normal
	}
	free := float64(on.Available) / float64(on.Total)
	switch {
	case free < share(t.Emergency, 0.05):
		return array.Emergency
	case free < share(t.Protected, 0.1):
		return array.Protected
	case free < share(t.Alert, 0.2):
		return array.Alert
	}
	return array.Normal
}

// share reads a number of the spec, which the API server has validated.
func share(text string, otherwise float64) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// capacityVerdict tells whether a pool takes new volumes as far as its room goes.
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

// quantity of bytes.
func quantity(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }

func capacityOf(on array.Pool, mode array.Mode) v1alpha1.Capacity {
	return v1alpha1.Capacity{
		Total: quantity(on.Total), Available: quantity(on.Available), Provisioned: quantity(on.Provisioned), Mode: v1alpha1.CapacityMode(mode),
	}
}
