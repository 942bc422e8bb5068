// Package servers has the server records of nodes on arrays, by which an array lets a node in. Tasks that attach volumes to the
// same node share a record, and none deletes it while another uses it. It asks no array: its callers do, while they hold a record.
package servers
