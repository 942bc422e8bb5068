// Package kubelet plays the volume manager of a kubelet against a CSI driver on
// a Unix socket. It is no list of calls: like the real one it has a desired
// state of the world (the pods in the [API] that are not over), an actual state
// (what may be mounted), and a reconciler that starts operations wherever the
// two differ. What a driver sees of it is therefore what it would see of the
// real one: retries with their waits, an unpublish of what was never published,
// none for what failed for good, and a new beginning after a crash with nothing
// to go by but the pods directory.
//
// It owns the pods directory and the staging directories, and deletes nothing
// there that it does not know. One goroutine owns both worlds and never blocks;
// all calls and files are dealt with in goroutines of operations, of which a
// volume of a pod has one at a time.
//
// [Attachments] plays the attach-detach controller and the external-attacher
// for persistent volumes. It meets the kubelet only in the API, as in a cluster.
//
// It judges no answer: whoever wants to is its [Listener]. It does not run
// containers either; who created a pod does so, and calls [API.Finish] when they
// have ended.
//
// Where it differs from the real one on purpose: an error of NodeGetCapabilities
// never changes what is known of a mount (the real one forgets an uncertain mount
// if the second of the two calls fails); a restart finds staged volumes that no
// pod uses any more in the staging directories, where the real one leaks them;
// the directories of a pod are removed as soon as its volumes are gone, not two
// seconds later.
package kubelet
