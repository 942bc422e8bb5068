// Package page has tests of the page that "kubectl katbox ui" shows, in a real browser. The plugin is
// the binary that people run; behind it are the gateway's and the nodes' own handlers, over files on
// a disk, and a small server that stands in for the API server: it knows who asks, asks its own
// rights, and passes on what is below /apis/katbox.io with a front-proxy certificate, as
// kube-apiserver does.
//
// They are in a module of their own, because of the browser's protocol; axe-core, which looks for what
// people with a screen reader or without a mouse would miss, comes from npm. "make page-check" runs
// them. With PAGE_SHOTS=DIR it also writes pictures of the page. With PAGE_KUBECONFIG=FILE the test
// TestRealCluster visits the volumes of a real cluster.
//
// Times are printed, not judged, except where this is asked for: a loaded machine is slow.
package page
