package hub

import (
	"encoding/binary"
	"net"
)

// records reads from the connections of a listener one record of TLS at a time. crypto/tls keeps as much room as it was ever given
// at once: with the beginnings of the next records, which come together where a node tells all that it holds, 9 instead of 3 KiB
// for as long as the connection lives.
type records struct{ net.Listener }

// Accept waits for the next connection.
func (l records) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recorded{Conn: c}, nil
}

// recorded is a connection that TLS reads from.
type recorded struct {
	net.Conn
	// header is that of the next record, of which read bytes have come; left is what has not come yet of a record's content.
	header     [5]byte
	read, left int
}

// NetConn returns the connection below.
func (c *recorded) NetConn() net.Conn { return c.Conn }

// Read reads a header of a record, or the content of one, or a part of it.
func (c *recorded) Read(p []byte) (int, error) {
	if c.left > 0 {
		n, err := c.Conn.Read(p[:min(len(p), c.left)])
		c.left -= n
		return n, err
	}
	n, err := c.Conn.Read(p[:min(len(p), len(c.header)-c.read)])
	copy(c.header[c.read:], p[:n])
	if c.read += n; c.read == len(c.header) {
		c.read, c.left = 0, int(binary.BigEndian.Uint16(c.header[3:]))
	}
	return n, err
}
