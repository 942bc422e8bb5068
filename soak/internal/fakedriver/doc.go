// Package fakedriver is a small driver for tests of the soak: it speaks CSI on a real
// socket, in this process, and makes real bind mounts, so it needs the rights to
// mount. It keeps the promises of the design as far as a test needs them, or
// breaks just one of them: see [Bugs].
//
// Its disk is the working directory; its records are a struct that outlives
// Kill, as a file would. It is no example of a good driver: it looks at all its
// volumes again and again, and says what a real one would only log.
//
// People are answered by the node's own handlers. What it does wrong with them it does
// to the request, on its way there, or in the volumes that the handlers ask.
package fakedriver
