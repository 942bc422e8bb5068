// Package persistent is what the kinds of persistent volumes on a node have in common, whatever the volumes are on: the front
// for what a kubelet asks, and which operation carries that out.
package persistent
