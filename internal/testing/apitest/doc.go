// Package apitest is a Kubernetes API server in memory, over HTTP, for tests of whole programs: one that
// outlives the program. It keeps objects of any kind, each with a resource version that grows with every
// change; it has pages and watches, the status subresource, generations, finalizers, preconditions and
// merge patches as the real one does. It knows no schema, validates and defaults nothing, and asks nobody
// who he is.
package apitest
