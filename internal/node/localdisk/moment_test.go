package localdisk

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestCopyInPiecesIsOfOneMoment: a pod numbers the blocks of a file around and around, while most of its image is copied. In
// the copy the numbers are those of one round, and its file system has no errors.
func TestCopyInPiecesIsOfOneMoment(t *testing.T) {
	each(t, imagesThatCopy, func(t *testing.T, k kind) {
		p := copyingPool(t, k)
		p.backend.(*images).extents = 8
		r := p.make(record("pvc-1", sizeFor(k)))
		path := p.stage(r)
		// Between two blocks lie others that are never written to, so each is an extent of its own.
		const blocks, size, stride = 256, 4096, 8 * 4096
		const step = 97 // those that are written one after another are in other pieces
		file, err := os.Create(path + "/numbers")
		must(t, err)
		defer file.Close()
		must(t, unix.Fallocate(int(file.Fd()), 0, 0, blocks*stride))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			block := make([]byte, size)
			for n := uint64(1); ctx.Err() == nil; n++ {
				binary.LittleEndian.PutUint64(block, n)
				if _, err := file.WriteAt(block, int64(n*step%blocks)*stride); err != nil {
					ended <- err
					return
				}
				if n == 2*blocks {
					close(begun)
				}
				if n%16 == 0 {
					if err := file.Sync(); err != nil { // so that the image changes all the time
						ended <- err
						return
					}
				}
			}
			ended <- nil
		}()
		select {
		case <-begun:
		case err := <-ended:
			t.Fatal(err)
		}
		for n := range 3 {
			c := record(fmt.Sprintf("pvc-copy%d", n), r.Size)
			c.Source.Volume = r.Name
			c = p.make(c)
			// Its journal is empty: nothing has to be carried out first.
			if out, err := roottest.Run("fsck.ext4", "-f", "-n", p.image(c.Name)); err != nil {
				t.Errorf("the copy has errors: %v: %s", err, out)
			}
			copied := p.stage(c)
			content, err := os.ReadFile(copied + "/numbers")
			must(t, err)
			if len(content) != blocks*stride {
				t.Fatalf("%d bytes", len(content))
			}
			low, high := binary.LittleEndian.Uint64(content), uint64(0)
			for at := 0; at < len(content); at += stride {
				number := binary.LittleEndian.Uint64(content[at:])
				low, high = min(low, number), max(high, number)
			}
			if high-low != blocks-1 {
				t.Errorf("the numbers are those from %d to %d, of more than one round", low, high)
			}
			p.unstage(c, copied)
			p.delete(c)
			must(t, p.Erase(t.Context()))
		}
		stop()
		must(t, <-ended)
	})
}
