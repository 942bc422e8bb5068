// Package csi is the CSI edge of the controller: the Identity and Controller services for
// volumes on remote arrays, or on the disks of nodes. It validates requests, turns them into the words of package pools, and
// turns errors into gRPC codes. It keeps no state and takes no locks; the [Pools] behind it do the work.
//
// What a code means to the sidecars decides whether something leaks: after a final code the provisioner
// takes it that nothing was made, and never deletes it. So while it is not known what became of a call
// on the array its code is Aborted, Unavailable, DeadlineExceeded or Canceled, and an error of no known
// kind counts as that.
package csi
