// Package certs holds the certificate that the gateway shows to the API server and to nodes, and
// keeps those informed who have to know its CA.
//
// [Builtin] makes a CA and a certificate itself and keeps them in a Secret that all replicas share.
// [Files] reads what cert-manager or a person has made. Both publish the CA, if told to, in the
// ConfigMap that nodes mount and in the caBundle of the APIService.
package certs
