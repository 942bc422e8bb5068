// Package sanity runs the Kubernetes project's csi-sanity against the driver, in
// this process: with real mounts, the real records and the real socket. It has
// nothing but tests, and is a module of its own so that what csi-sanity needs
// does not become a dependency of the daemon.
//
// csi-sanity is version 5.4.0: the last one for version 1.12 of the CSI
// specification, which the daemon speaks.
package sanity
