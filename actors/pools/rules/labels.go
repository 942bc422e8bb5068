package rules

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SetLabel sets a label, if the value can be one.
func SetLabel(object client.Object, key, value string) {
	const longest = 63
	if len(value) <= longest {
		object.GetLabels()[key] = value
	}
}
