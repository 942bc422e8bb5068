// Package e2e runs Katbox under a real kubelet, from the image and the manifests
// that an operator installs. "make e2e" lists its suites. It brings a cluster up, with
// what the suite takes, runs the suite's test, and takes the cluster down again.
//
// The cluster comes from elsewhere: REALKUBELET names a directory with its
// scripts, which "run" describes. The tests are behind the build tag e2e: without a cluster "go test ./..."
// finds none, rather than tests that are skipped.
//
// The array of TestPools is not real, and the node's part stands in and mounts nothing. TestArray and TestArraySpecs
// run in a virtual machine, whose kernel has NFS and iSCSI and serves the volumes of the array, too.
// The disks of TestLocal are image files of XFS and ext4.
//
// Only what the node demands is changed in the manifests: where its kubelet is,
// the working directory, the host's network and the port, see manifests.go. What
// is timed is measured in the same run beside its baseline, and fails only when it
// is off by more than a busy machine explains; the report at the end has the
// numbers.
package e2e
