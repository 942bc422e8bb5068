package archived

import "testing"

// TestSeekInPiece: files in one piece are read one after another without beginning it again.
func TestSeekInPiece(t *testing.T) {
	s := newStage(t)
	v := s.archive(evidence(t), shown(alpha, 1))
	x, release, err := s.open(t.Context(), "alice", v)
	must(t, err)
	defer release()
	c := x.reader(t.Context())
	defer c.close()
	read := func(offset int64) {
		c.seek(offset)
		_, err := c.Read(make([]byte, 100))
		must(t, err)
	}
	read(512)
	begun := c.from
	read(4096)
	read(1 << 20)
	if c.from != begun {
		t.Error("the piece was begun again")
	}
	read(512)
	if c.offset != 612 || c.from == begun {
		t.Errorf("it is at %d", c.offset)
	}
}
