package fakedriver

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// kubeletPrefix begins the keys of the volume context that are no attributes.
const kubeletPrefix = "csi.storage.k8s.io/"

// longestValue is how long the value of an attribute may be, in bytes, longestAttach that
// of attach.
const longestValue, longestAttach = 64, 320

// attributes are those that there are, each with what a value has to be.
var attributes = map[string]func(value string) bool{
	"attach":            regexp.MustCompile(`^[-A-Za-z0-9]+/[-a-z0-9]+$`).MatchString,
	"inodeLimit":        func(value string) bool { return isQuantity(value, "2", "1T") },
	"lifespan":          isDuration,
	"lifespanSucceeded": isDuration,
	"logs":              func(value string) bool { return value == "true" || value == "false" },
	"mode":              regexp.MustCompile(`^(0?[0-7]{3}|1[0-7]{3})$`).MatchString,
	"retain":            func(value string) bool { return slices.Contains([]string{"Always", "OnFailure", "Never"}, value) },
	"sizeLimit":         func(value string) bool { return isQuantity(value, "64Ki", "1Ei") },
}

// withDays are durations in years, weeks or days, with what else may follow.
var withDays = regexp.MustCompile(`^([0-9]{1,2}y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$`)

func isDuration(value string) bool {
	if strings.ContainsAny(value, "ywd") {
		return withDays.MatchString(value) && strings.ContainsAny(value, "123456789")
	}
	d, err := time.ParseDuration(value)
	return err == nil && d > 0
}

func isQuantity(value, least, most string) bool {
	q, err := resource.ParseQuantity(value)
	return err == nil && q.Cmp(resource.MustParse(least)) >= 0 && q.Cmp(resource.MustParse(most)) <= 0
}

// checkAttributes refuses what a pod may not ask for, the first key first.
func (r *run) checkAttributes(values map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(key, kubeletPrefix) {
			continue
		}
		legal, known := attributes[key]
		longest := longestValue
		if key == "attach" {
			longest = longestAttach
		}
		switch {
		case !known && r.cfg.Bug == IgnoresUnknown:
		case !known:
			return r.invalid("volume_context "+key, "is no attribute")
		case len(values[key]) > longest || !legal(values[key]):
			return r.invalid("volume_context "+key, "has a value that it cannot have")
		}
	}
	return nil
}
