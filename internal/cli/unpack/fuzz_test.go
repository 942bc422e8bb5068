package unpack

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
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
		for _, on := range []system{host, asWindows} {
			_, _ = unpackOn(t.Context(), on, bytes.NewReader(fixed(b)), Options{Dir: dest, Overwrite: overwrite, Symlinks: true})
			if after := state(t, outside); after != before {
				t.Errorf("outside was\n%sand is\n%s", before, after)
			}
			openAll(dest)
			dest = t.TempDir()
		}
	})
}

// openAll lets the end of a test remove a directory.
func openAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
}

// looksLikeASCII reports whether folding makes ASCII of what is not: a space of a thin one, a letter of a wide one.
func looksLikeASCII(r rune) bool {
	return r > unicode.MaxASCII && !strings.ContainsFunc(fold(string(r)), func(r rune) bool { return r > unicode.MaxASCII })
}

// FuzzNamesOfWindows looks whether a name gets to Windows that it does not have, or has twice.
func FuzzNamesOfWindows(f *testing.F) {
	for _, seed := range []string{"CON\na", "A/x\na/x\na/y", "a:b/x\nl", "\u00e9\ne\u0301", "THERE~1.TXT", "a/\xff"} {
		f.Add(seed)
	}
	on := system{rules: windowsRules, open: foldingMac.open}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, looksLikeASCII) {
			return // the disk of this test makes another character of it, as Windows does not
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for name := range strings.SplitSeq(text, "\n") {
			if w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(name))}) == nil {
				_, _ = io.WriteString(w, name)
			}
		}
		must(t, w.Close())
		dest := t.TempDir()
		_, _ = unpackOn(t.Context(), on, &b, Options{Dir: dest, Overwrite: true})
		must(t, filepath.WalkDir(dest, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dest {
				return err
			}
			if why := windowsName(d.Name()); why != "" {
				t.Errorf("%q: %s", path, why)
			}
			if !d.Type().IsRegular() || strings.Contains(d.Name(), fold(suffix)) {
				return nil
			}
			content, err := os.ReadFile(path)
			if name, _ := filepath.Rel(dest, path); fold(string(content)) != filepath.ToSlash(name) {
				t.Errorf("%q has the contents of %q", name, content)
			}
			return err
		}))
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
