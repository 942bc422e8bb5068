package unpack

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack unpacks arbitrary bytes, and looks whether something outside changed.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, file("a"), directory("b"), symlink("b/c", ".."), file("b/c/d"), link("e", "a")), true)
	f.Add(archive(f, file("../outside/file")), false)
	f.Add(archive(f, file("to-outside/x"), symlink("x", "to-outside")), true)
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeReg, Name: "p", PAXRecords: map[string]string{"path": "../outside/file"}}), true)
	f.Add(holes(f, "4\n0\n3\n9\n0\n", 10), true)
	f.Fuzz(func(t *testing.T, b []byte, overwrite bool) {
		outside, dest := place(t)
		before := state(t, outside)
		_, _ = Unpack(t.Context(), bytes.NewReader(fixed(b)), Options{Dir: dest, Overwrite: overwrite, Symlinks: true})
		if after := state(t, outside); after != before {
			t.Errorf("outside was\n%sand is\n%s", before, after)
		}
		_ = filepath.WalkDir(dest, func(path string, d fs.DirEntry, err error) error {
			// For the end of the test, which removes it.
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return err
		})
	})
}

// fixed is an archive whose headers have right checksums, so that a fuzzer gets behind them.
func fixed(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 0; i+512 <= len(b); i += 512 {
		block := b[i : i+512]
		if !bytes.Equal(block[257:262], []byte("ustar")) {
			continue
		}
		copy(block[148:156], "        ")
		sum := 0
		for _, c := range block {
			sum += int(c)
		}
		for at := 153; at >= 148; at-- {
			block[at] = byte('0' + sum&7)
			sum >>= 3
		}
		block[154] = 0
	}
	return b
}
