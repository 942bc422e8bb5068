package hub

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// sent is a connection that has brought something.
type sent struct {
	net.Conn
	io.Reader
}

func (s sent) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// TestRecordByRecord: however much has come, and in whatever parts, one read has a header or the content of one record.
func TestRecordByRecord(t *testing.T) {
	last := "\x17\x03\x03\x01\x00" + strings.Repeat("x", 256)
	all := []byte("\x17\x03\x03\x00\x05hello" + "\x17\x03\x03\x00\x00" + last + last[:7])
	for name, reader := range map[string]io.Reader{
		"at once": bytes.NewReader(all), "byte by byte": iotest.OneByteReader(bytes.NewReader(all)),
	} {
		c := &recorded{Conn: sent{Reader: reader}}
		var got []byte
		room := make([]byte, 4096)
		for _, want := range []int{5, 5, 5, 5, 256, 5, 2} {
			for part := 0; part < want; {
				n, err := c.Read(room)
				if err != nil || part+n > want {
					t.Fatalf("%s: read %d of %d bytes, %v", name, part+n, want, err)
				}
				part += n
				got = append(got, room[:n]...)
			}
		}
		if _, err := c.Read(room); !errors.Is(err, io.EOF) || !bytes.Equal(got, all) {
			t.Errorf("%s: %v after %q", name, err, got)
		}
	}
}
