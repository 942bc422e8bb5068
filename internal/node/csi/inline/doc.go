// Package inline is the CSI edge: the Identity and Node services for ephemeral inline volumes, on a
// Unix socket. It validates requests, turns them into the words of package volume, and turns errors
// into gRPC codes. It keeps no state and takes no locks; the [Volumes] behind it do the work.
//
// Only this package knows CSI and gRPC status codes.
package inline
