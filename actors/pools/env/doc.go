// Package env is what all actors and tasks of the controller work with: its configuration, the Kubernetes API, and the questions
// that they ask of one another again and again, such as for a pool that may be changed. It decides nothing.
package env
