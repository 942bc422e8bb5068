package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Duration is a [time.Duration] that YAML writes like "1m30s".
type Duration time.Duration

// D is the duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String is like that of a [time.Duration].
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalYAML writes the duration with its units.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// UnmarshalYAML reads a duration with its units. A bare number has none, so it
// is refused.
func (d *Duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*d = Duration(parsed)
	return nil
}

// Bytes is a size that YAML writes like "512Mi" or "2Gi", or as a plain number.
type Bytes int64

// units are the suffixes of sizes, the largest first.
var units = []struct {
	suffix string
	size   int64
}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}}

// String writes the size with the largest unit that leaves a whole number.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalYAML writes the size as String does.
func (b Bytes) MarshalYAML() (any, error) {
	if text := b.String(); strings.HasSuffix(text, "i") {
		return text, nil
	}
	// As a string it would get quotes.
	return int64(b), nil
}

// UnmarshalYAML reads a plain number, or one with a unit.
func (b *Bytes) UnmarshalYAML(node *yaml.Node) error {
	number, size := node.Value, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(node.Value, u.suffix); ok {
			number, size = rest, u.size
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	if n > math.MaxInt64/size || n < math.MinInt64/size {
		return fmt.Errorf("line %d: %q is too large", node.Line, node.Value)
	}
	*b = Bytes(n * size)
	return nil
}
