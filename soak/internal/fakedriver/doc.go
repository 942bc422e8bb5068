// Package fakedriver is a small driver for tests of the soak: it speaks CSI on a real
// socket, in this process, and makes real bind mounts, so it needs the rights to
// mount. It keeps the promises of the design as far as a test needs them, or
// breaks just one of them: see [Bugs].
//
// Its disk is the working directory; its records are a struct that outlives
// Kill, as a file would. It is no example of a good driver: it looks at all its
// volumes again and again, and says what a real one would only log.
//
// The kubelet and people are answered by the node's own edges, for CSI and for the API. What it
// does wrong with what they ask it does to the request, on its way there, or in the volumes behind
// them.
package fakedriver
