// Package trust answers three questions of the gateway: who asks, may he, and which namespace is
// meant.
//
// [Authenticator] believes the headers X-Remote-* of a request only if its client certificate was
// issued by the cluster's request-header CA, for a name that the cluster allows. Kubernetes' own
// packages verify both. CA, names and the names of the headers come from the ConfigMap
// kube-system/extension-apiserver-authentication, which is watched: a CA that has been replaced is
// refused from then on, on connections that are open already too. It refuses to start, and later
// to accept any client, where the request-header CA is also the CA of the cluster's users and no
// name is demanded: there each user could claim any name. kube-apiserver adds a new CA to the
// ConfigMap and leaves the one before there. To end that one's trust, delete the ConfigMap:
// kube-apiserver makes it anew at once, with what it uses now.
//
// [Authorizer] asks the API server by SubjectAccessReview and keeps answers for 10 s. Where there
// is no answer there is no access.
//
// [Namespaces] knows the UID and the age of each namespace, and nothing else about it.
//
// The package writes no answers: its errors are [*UnauthenticatedError], which is a 401, and
// [ErrUnavailable], which is a 503.
package trust
