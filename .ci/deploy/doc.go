// Package deploy has tests of what is in deploy/: the manifests and the chart,
// rendered by the programs that people use and judged by the API server's own code.
// They are in a module of their own, which pins those programs; the daemon's stays
// free of them.
package deploy
