// Package watch follows several kinds of objects in the Kubernetes API, with package follow, and says when all of them have been
// listed. It passes each object on, and keeps nothing of it except for the name.
package watch
