// Package nfs mounts the exports of arrays by mount(2), without the programs of nfs-utils and without any
// daemon on the node.
//
// The protocol is NFS 4.2 unless an option says otherwise (vers=4.1, vers=4.0, vers=3). Nothing is negotiated
// down: a server that lacks the version is an error. With vers=4 it is the newest 4.x that both sides speak. A mount is
// hard unless an option says soft or softerr: while the server does not answer, a process that uses the mount waits, and loses
// nothing.
//
// # What waits for the server
//
// While a server is away, be it the network or the service, these wait until it is back, and cannot be
// interrupted: [Mount], statfs(2) and whatever else reads or writes below the mount, and the unmount of the last mount
// from that server, with which the kernel takes leave of it. That one has left the mount table when it waits. An
// unmount with data that has not been written yet waits too.
//
// These do not wait: to read the mount table, to bind the mount elsewhere and to unmount that, and to unmount one of
// several exports of the server. [Mount] of what is mounted already only reads the table.
package nfs
