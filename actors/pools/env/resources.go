package env

import (
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resources is the Kubernetes API as the actors use it. What Get and List return is what the API
// server has at that moment, not what a cache had.
type Resources struct {
	client.Client
	Events record.EventRecorder
}
