package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/lib/nearest"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// KubeletPrefix begins the keys that the kubelet sets, whose values are its own.
const KubeletPrefix = "csi.storage.k8s.io/"

// asked is what a pod asks for with its attributes; zero for what it does not mention.
type asked struct {
	lifespan, lifespanSucceeded time.Duration
	retain                      *volume.Retain
	limit                       volume.Size
	mode                        uint32
	attach                      string
	noLogs                      bool
	archive                     *volume.Archive
	// converted: no person asks, so that all of it is cut to the bounds.
	converted bool
}

// read checks the attributes of a volume, in the order of their keys. The error is a
// [volume.InvalidError].
func read(attributes map[string]string) (asked, error) {
	var all asked
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if strings.HasPrefix(key, KubeletPrefix) {
			continue
		}
		i, ok := slices.BinarySearchFunc(Attributes, key, func(a *Attribute, key string) int { return strings.Compare(a.Key, key) })
		if !ok {
			return asked{}, invalid(key, unknown(key))
		}
		if reason := Attributes[i].take(&all, attributes[key]); reason != "" {
			return asked{}, invalid(key, reason)
		}
	}
	if all.attach == "" {
		return all, nil
	}
	for _, a := range Attributes {
		if _, ok := attributes[a.Key]; ok && a.Key != api.KeyAttach {
			return asked{}, invalid(a.Key, "means nothing beside "+api.KeyAttach+": the volume that is attached has its own terms")
		}
	}
	return all, nil
}

// take takes over a value, or says why it is refused.
func (a *Attribute) take(to *asked, value string) (refused string) {
	switch {
	case utf8.RuneCountInString(value) > a.MaxLength():
		return fmt.Sprintf("is longer than %d characters; it has to be %s", a.MaxLength(), a.Means)
	case !a.form.MatchString(value) || !a.read(to, value):
		return fmt.Sprintf("is %q, but it has to be %s", value, a.Means)
	}
	return ""
}

func invalid(key, reason string) error { return volume.Invalid(Field(key), reason) }

// Field is what errors call an attribute: by the name of the field of a pod, since its user reads them in an event.
func Field(key string) string {
	if len(key) > MaxValue {
		key = key[:MaxValue] + "..."
	}
	return fmt.Sprintf("volumeAttributes[%q]", key)
}

// unknown says what a key may be meant to be.
func unknown(key string) string {
	if near := nearest.Of(key, Keys()); near != "" {
		return fmt.Sprintf("is not known; did you mean %s?", near)
	}
	return "is not known; there are " + strings.Join(Keys(), ", ")
}

// Keys are those of all attributes, sorted.
func Keys() []string {
	keys := make([]string, len(Attributes))
	for i, a := range Attributes {
		keys[i] = a.Key
	}
	return keys
}
