// Demo shows on one machine, without a cluster, what Katbox does for a pod that
// is gone. It starts the real daemon on a small disk, runs real jobs in real
// volumes, and uses the commands that an administrator uses on a node. It prints
// each command and its output.
//
// The page deploy/docs/demo.md holds what it prints. A test runs the demo and compares.
//
//   - main.go and options.go are the command line.
//   - node.go is the node: the disk, the daemon, and a stand-in for the kubelet.
//   - pod.go runs a pod: its volume is published, and a shell runs its job there; log.go writes what that prints.
//   - story.go and its acts are what happens, in order.
//   - transcript.go is what the reader sees.
//
// Everything happens in a mount namespace of its own. Root needs no more; other
// users become root of a user namespace. At the end nothing is left, neither
// mounted nor in the temporary directory.
//
// It is a demonstration, not a proof: the soak proves.
package main
