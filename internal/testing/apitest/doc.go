// Package apitest is a Kubernetes API server in memory, for tests: over HTTP for whole programs, one that outlives the program, and
// within the process for tests in a bubble of package synctest. It keeps objects of any kind, each with a resource version that
// grows with every change; it has pages, watches with bookmarks, selectors, the status subresource, generations, finalizers,
// preconditions and merge patches as the real one does. It knows no schema, validates and defaults nothing, and authenticates no
// client.
package apitest
