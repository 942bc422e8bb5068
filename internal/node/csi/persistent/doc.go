// Package persistent is the CSI edge of the nodes for persistent volumes, on remote arrays or on the node's own disks: the
// Identity and Node services.
// It validates requests, turns them into the words of package pools, and turns errors into gRPC codes. It
// keeps no state and takes no locks; the [Volumes] behind it do the work.
//
// What a code means to the kubelet decides whether something leaks. After a final code of
// NodeStageVolume it takes it that nothing is staged, and never unstages: a session, a mount and a device
// would stay. So only what was undone, or never begun, gets a final code, and an error of no known kind is
// open.
//
// Secrets in a request are not used: a node learns how to log in to an array from the Secret that the
// publish context names. No log line and no error has them, or any other value of a request's maps.
package persistent
