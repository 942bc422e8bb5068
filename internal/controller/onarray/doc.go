// Package onarray lets a pool on a disk of a node be an [array.Array], so that the controller treats it as one that is
// reached over the network: it has the same states, and each change is looked at first. A volume's and a snapshot's
// ID is its name. There are no servers, and nothing is attached.
package onarray
