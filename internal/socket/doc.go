// Package socket opens the Unix sockets that the kubelet calls.
//
// It takes over a socket that a dead process left, and refuses one that a process answers
// on. Only root may use a socket. Closing it removes its file, but not another file in
// its place.
package socket
