// Arrays is the soak of persistent volumes on arrays: many short pods on volumes over NFS, with a file
// system over iSCSI and as devices. Volumes are made, attached, staged, published, written with known
// content, expanded, snapshotted, restored and compared, and all the way back, while by a seed the array's
// answers get lost or hang, its token is another, it is away or its portal moves, and the daemon and the
// controller are killed. It prints what was broken of the promises, and then exits with 1.
//
// It runs in a virtual machine with the kernel's NFS and iSCSI, which "make guest SUITE=arrays" boots. Katbox is
// the programs that are installed: the daemon and the controller. Around them are an API server in memory,
// the fake array with real data, the soak's kubelet with its attach-detach controller, and a small
// external-provisioner.
//
//   - main.go and options.go are the command line, run.go is a run from its beginning to its end.
//   - life.go is the life of one volume; rounds.go what its pods do; provisioner.go makes it and deletes it.
//   - pods.go is the kubelet with its pods, container.go the process that writes and compares.
//   - faults.go breaks things; programs.go runs Katbox's programs; array.go and kubernetes.go what they talk to.
//   - watch.go checks all the time, left.go and once.go at the end; findings.go is what was found.
//
// What is promised of a volume, that it is there with its size and its data until it is deleted, is judged by package
// story, which life.go and rounds.go tell what was asked, answered and seen. What concerns no single volume, or what a
// story has no word for, stays here: to how many servers of the array a volume is attached, what the array did twice,
// and what is left at the end.
package main
