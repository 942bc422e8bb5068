// Package sanity runs the Kubernetes project's csi-sanity against the driver, in
// this process: with real mounts, the real records and the real socket. It has
// nothing but tests, and is a module of its own so that what csi-sanity needs
// does not become a dependency of the daemon.
//
// csi-sanity is version 5.6.0, for version 1.13 of the CSI specification, which
// the daemon speaks.
package sanity
