package lifespan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Line is what the kubelet wants to be free on a file system: with less it evicts pods (its
// evictionHard). It cannot free what Katbox retains, so retained volumes have to go before it acts.
// The zero Line says that the kubelet does not look at this file system.
type Line struct{ Bytes, Inodes Amount }

// DefaultLine is the kubelet's default for a file system that also holds the images of containers:
// imagefs.available and nodefs.inodesFree.
var DefaultLine = Line{Bytes: Amount{share: 0.15}, Inodes: Amount{share: 0.05}}

// ParseLine reads "none" or BYTES[,INODES]. Each is a percentage, such as 15%, or a Kubernetes
// quantity, such as 20Gi. Without INODES there is no line for inodes.
func ParseLine(text string) (Line, error) {
	if text == "none" {
		return Line{}, nil
	}
	bytes, inodes, both := strings.Cut(text, ",")
	var line Line
	var err error
	if line.Bytes, err = ParseAmount(bytes); err != nil {
		return Line{}, fmt.Errorf("bytes %q: %w", bytes, err)
	}
	if both {
		if line.Inodes, err = ParseAmount(inodes); err != nil {
			return Line{}, fmt.Errorf("inodes %q: %w", inodes, err)
		}
	}
	return line, nil
}

// String returns what [ParseLine] reads.
func (l Line) String() string {
	switch {
	case l == Line{}:
		return "none"
	case l.Inodes == Amount{}:
		return l.Bytes.String()
	}
	return l.Bytes.String() + "," + l.Inodes.String()
}

// Amount is a share of a total, or a number of bytes or inodes. The zero Amount is nothing.
type Amount struct {
	share float64
	count uint64
}

var (
	errNoAmount   = errors.New("is neither a percentage such as 15% nor a quantity such as 20Gi")
	errPercentage = errors.New("is outside of 0% to 100%")
	errQuantity   = errors.New("is negative or too large")
)

// most is what resource.ParseQuantity returns for any larger number.
var most = *resource.NewQuantity(math.MaxInt64, resource.BinarySI)

// ParseAmount reads a percentage below 100%, such as 15%, or a Kubernetes quantity, such as 20Gi.
func ParseAmount(text string) (Amount, error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil:
			return Amount{}, errNoAmount
		case !(percent >= 0 && percent < 100): // NaN is refused too
			return Amount{}, errPercentage
		}
		return Amount{share: percent / 100}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return Amount{}, errNoAmount
	case quantity.Sign() < 0, quantity.Cmp(most) >= 0:
		return Amount{}, errQuantity
	}
	return Amount{count: uint64(quantity.Value())}, nil
}

// Of returns the amount of a file system that has total.
func (a Amount) Of(total int64) float64 { return a.share*float64(total) + float64(a.count) }

// String returns the amount as a percentage or a number.
func (a Amount) String() string {
	if a.share > 0 {
		return strconv.FormatFloat(100*a.share, 'g', 6, 64) + "%"
	}
	return strconv.FormatUint(a.count, 10)
}
