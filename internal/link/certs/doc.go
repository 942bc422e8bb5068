// Package certs holds the certificate that the gateway shows to the API server and to nodes, or the
// controller to nodes, and tells its CA to those who connect. No client ever has to skip verification.
//
// [Builtin] makes a CA, good for a year, and with it a certificate, good for 30 days. Both are in a
// Secret that all replicas share: of two that write, the first wins by its resource version, and the
// other takes what it wrote. Each replica reads the Secret every 30 s. After two thirds of its life
// each of the two is replaced:
//
//	certificate  the active CA issues another
//	CA           another is made, and published beside the active one; 10 min after it was in all
//	             places it becomes the active one and issues a certificate; the one before stays
//	             published until it has ended
//
// What a step has changed is in the Secret before it is seen anywhere else, so a crash between two
// steps loses nothing: the next look goes on from what is there.
//
// A Secret that is gone or damaged is replaced, with a CA that no client knows yet. The API server
// learns of it at once. A node does within the 2 min in which its kubelet refreshes ConfigMaps, and
// cannot connect until then; connections that are open stay. To delete the Secret is thus the way to
// get rid of a key that others have seen. A Secret that a newer version of the program has written
// is left alone.
//
// [Files] reads what cert-manager or a person has made, and reads it again when it changes.
//
// Both publish the CA, if told to, in the key ca.crt of the ConfigMap that nodes mount and in the
// caBundle of the APIService, and correct what others write there: damaged or missing content at
// the next look, additional CAs after 10 min. Until then replicas that do not know the same CAs yet
// leave each other's in peace. An APIService that has been made anew gets its caBundle at the next look.
package certs
