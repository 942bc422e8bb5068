package hub

import "context"

// With returns the nodes that may hold volumes of the namespace.
func (r *Registry) With(namespace string) []Held { return r.Look(context.Background(), namespace).Held }

// Missing returns the nodes that should be connected and are not.
func (r *Registry) Missing() []Missing {
	missing, _ := r.missing()
	return missing
}
