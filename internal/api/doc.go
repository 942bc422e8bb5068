// Package api is how people reach retained volumes: the words of the HTTP API, its handlers on the
// node, and its client.
package api
