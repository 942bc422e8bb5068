// Package attachtest helps tests that need volumes of an array on this machine: fake arrays with real data
// (package dataplane), and what is between them and a node, the kernel's NFS and iSCSI.
//
// Such tests run in a virtual machine, by "make guest SUITE=attach", which lists their packages. Their names begin
// with TestArray, and they begin with [NewArray] or [Need]. They run one after the other: the machine has one
// NFS server, one initiator and one mount table.
package attachtest
