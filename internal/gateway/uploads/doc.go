// Package uploads decides what nodes may write to the bucket of the archive, and signs it: one object with one URL, for five
// minutes. No node has a credential of the bucket.
//
// The key of an object is the gateway's choice alone. It has the UID of the namespace whose volume it is, and that is never what
// the node says: the API server has said whose the pod is, to this gateway while the pod was there, or to another one, or
// to this one before it was started again. For the latter two there are seals: the answer about an owner
// carries one, which the node keeps with the volume and gives back. It is an HMAC with the key that all gateways of
// the cluster share, over the node, the pod and its owner.
//
// The signature covers the length and the SHA-256 of the object. So a URL that was stolen writes the same bytes again. What
// the pieces and the index of a volume say is the word of its node, and is shown as no more than that.
//
// An index is signed once all its pieces are in the bucket, and if there is none of what the node has of that volume now. One of an
// earlier copy is deleted then, if it is of the same pod and node. When an index ends is decided here, and stands in its key.
package uploads
