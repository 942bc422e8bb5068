package rules

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/controller/array"
)

// Modes are all modes, from the best to the worst.
var Modes = []array.Mode{array.Normal, array.Alert, array.Protected, array.Emergency}

// WorseMode returns the worse one of two modes.
func WorseMode(a, b array.Mode) array.Mode {
	if slices.Index(Modes, b) > slices.Index(Modes, a) {
		return b
	}
	return a
}

// ParseShare reads a number of the spec, which the API server has validated.
func ParseShare(text string, otherwise float64) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// Quantity of bytes.
func Quantity(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }
