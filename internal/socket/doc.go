// Package socket opens the Unix sockets that the kubelet calls.
//
// A socket that a dead process left is taken over, and one that somebody answers
// on is refused. Only root may use it. Its file is removed when it is closed, but
// not one that somebody else has put in its place.
package socket
