package v1alpha1

import (
	"encoding/json"
	"time"

	"github.com/katbox/katbox/internal/model/duration"
)

// Duration is a length of time that is not negative, as people write it, in days and weeks too: 90m, 36h, 3d,
// 1d12h. It is written as metav1.Duration writes one: 36h0m0s. The API server refuses what cannot be read: one
// resource with that would keep the controller from reading all others of its kind. A negative one, which an earlier rule
// let through, is read as 0.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*|(([0-9]{1,2}y)([0-9]{1,3}w)?([0-9]{1,4}d)?|([0-9]{1,3}w)([0-9]{1,4}d)?|[0-9]{1,4}d)([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,8}s)?([0-9]{1,10}ms)?)$') && (self.matches('[dwy]') || duration(self) >= duration('0s'))`,message="it has to be a duration of less than 100y, such as 90m, 36h, 3d or 1d12h"
type Duration struct {
	time.Duration `json:"-"`
}

// MarshalJSON is described at [Duration].
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON is described at [Duration].
func (d *Duration) UnmarshalJSON(content []byte) error {
	var text string
	if err := json.Unmarshal(content, &text); err != nil {
		return err
	}
	read, err := duration.Parse(text)
	d.Duration = max(read, 0)
	return err
}
