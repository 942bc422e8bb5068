// Package edge is what the CSI services of all drivers share: a gRPC server on a Unix socket that logs,
// counts and traces calls, survives a panic in one, and gives each error its code; and the checks and
// answers that two of them have in common.
//
// Which code an error gets is the driver's business: what a code means to the caller differs between
// the kubelet and the controller's sidecars.
package edge
