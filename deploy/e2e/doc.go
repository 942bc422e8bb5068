// Package e2e runs Katbox under a real kubelet, from the image and the manifests
// that an operator installs. "make e2e" brings a cluster of one node up, runs the
// scenarios one after the other and takes the cluster down again.
//
// The cluster comes from elsewhere: REALKUBELET names a directory with its
// scripts, which "run" lists. Without it nothing is run, and that is said. So that
// nobody takes this for tests that passed, they are behind the build tag e2e and
// "go test ./..." finds none here.
//
// "make e2e-gateway" runs TestGateway in a cluster of three nodes with RBAC, aggregated
// APIs and a network for pods: people with different rights ask the gateway through the
// API server, by kubectl and by HTTP.
//
// "make e2e-chart" runs TestChart in a cluster of one node with RBAC and a network for pods: upgrades of the chart from
// v0.1.0, sets of nodes, and helm test.
//
// "make e2e-pools" runs TestPools in a cluster with RBAC and a network for pods: the controller of the pools,
// from its image and manifests, with the real sidecars and the controllers of persistent volumes, against an
// array that is not real. The node's part stands in and mounts nothing.
//
// "make e2e-array" runs TestArray in a virtual machine, whose kernel has NFS and iSCSI: a cluster of one node with the
// daemon, the controller and the real sidecars, and volumes of an array that is not real, but serves its volumes
// from the same kernel. "make e2e-array-specs" runs TestArraySpecs there: the specs for storage of Kubernetes itself, with
// volumes of that array.
//
// "make e2e-local" runs TestLocal in a cluster of three nodes with RBAC and a network for pods: volumes on the nodes' own
// disks, which are image files of XFS and ext4, while nodes, disks, daemons and the controller go and come back.
// "make e2e-local-rate" measures there how fast such volumes are made and deleted.
//
// Only what the node demands is changed in the manifests: where its kubelet is,
// the working directory, the host's network and the port, see manifests.go. What
// is timed is measured in the same run beside its baseline, and fails only when it
// is off by more than a busy machine explains; the report at the end has the
// numbers.
package e2e
