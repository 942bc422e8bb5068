package rules

import (
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// NoLifespan is that of a claim that does not say.
const NoLifespan time.Duration = -1

// LifespanOf reads the annotation of a claim, or of a PersistentVolume. One that is invalid counts as none.
func LifespanOf(o metav1.Object) (time.Duration, error) {
	text, ok := o.GetAnnotations()[v1alpha1.LifespanAnnotation]
	if !ok {
		return NoLifespan, nil
	}
	lifespan, err := duration.Parse(text)
	if err == nil && lifespan < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return NoLifespan, fmt.Errorf("the annotation %s is %.100q: %w; that of the PoolClass holds", v1alpha1.LifespanAnnotation, text, err)
	}
	return lifespan, nil
}

// LifespanToSpec is a lifespan for a resource's spec: nil for [NoLifespan].
func LifespanToSpec(lifespan time.Duration) *v1alpha1.Duration {
	if lifespan < 0 {
		return nil
	}
	return &v1alpha1.Duration{Duration: lifespan}
}

// LifespanFromSpec is a lifespan of a resource's spec: [NoLifespan] where it has none.
func LifespanFromSpec(lifespan *v1alpha1.Duration) time.Duration {
	if lifespan == nil {
		return NoLifespan
	}
	return lifespan.Duration
}

// WholeSeconds is a lifespan as the times in a resource tell it, which have whole seconds: rounded up, so that nothing goes
// early.
func WholeSeconds(lifespan time.Duration) time.Duration {
	if whole := lifespan.Truncate(time.Second); lifespan > whole && whole < math.MaxInt64-time.Second {
		return whole + time.Second
	}
	return lifespan
}

// UntilOf is the end of a lifespan that begins.
func UntilOf(since metav1.Time, lifespan time.Duration) metav1.Time {
	return metav1.NewTime(since.Add(WholeSeconds(lifespan)))
}
