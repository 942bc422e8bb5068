// Package fleet answers questions about the retained volumes of all nodes: lists, the newest first,
// and the search for one volume by its name. It keeps no index of volumes. A list asks the nodes
// that hold volumes of the namespace for a few each, and merges their answers.
//
// # A list
//
// Volumes are ordered by the time when they were retained, then by their ID, then by their node. That
// order is total, and the place of a volume in it only moves up, when a pod uses the volume again.
// So a list that goes down from place to place shows no volume twice, and every volume that was
// there all the time.
//
// A page begins at a place in that order. Each node is asked for its newest volumes below the place,
// twice as many as its share. What a node has answered reaches down to its frontier: the node may
// have more below, and nothing new above. A page ends at its limit, or at the highest frontier of a
// node that has more. Nodes whose frontier ends the page too early are asked again, in at most three
// rounds. A page may therefore be shorter than its limit, or empty, and not be the last.
//
// A node that does not answer delays no request: the page is made without it, and names it, and so do
// all further pages of that list. If no node at all answers, the list is an error and not empty.
//
// # Which nodes a page asks
//
// A node that was not asked has a frontier, too: it says when the newest volume that it holds was retained ([api.Holding]). The first N
// volumes of a list are on N nodes at most, those that say they hold the newest. So a page asks twice as many nodes as its limit, and
// at least 1,000; and those that may hold volumes above the page. Another one is asked in the next round if the page would end below its
// frontier. All nodes are asked while they are not more than that, and if a list selects volumes by more than the namespace; and one
// that does not say how new its newest volume is always is.
//
// So a page that does not ask all nodes lacks what was retained since a node has said what it holds, which it does every five seconds, and
// so do the pages after it. A node that says it holds newer volumes than it does is asked for nothing. One that says its volumes are
// older hides its own, as it could by not listing them. Neither hides what another node has.
//
// # The archive
//
// Copies of volumes outlive their nodes in an [Archive]. Each namespace there is one more source of a list. A volume that its node
// has, too, is listed as the node says; if the clock of the node was adjusted since it was copied, by so much that the two are on
// different pages, it is listed on both. A volume that its node does not have, or that cannot be asked for it, is found in the archive.
//
// # What a node says is not trusted
//
// A node may be broken, or in the hands of an attacker. Entries that were not asked for, that name
// another node, that are out of order or beyond all measure are left out and counted. They take the
// place of no other node's entries. Whose a volume is, the package decides again by what the gateway
// itself has read from the API server.
//
// The package does not authenticate or authorize users: the caller says whether the reader may see
// volumes in all namespaces. It does not retry, and caches nothing.
package fleet
