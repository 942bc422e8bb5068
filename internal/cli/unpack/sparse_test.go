package unpack

import (
	"archive/tar"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/lib/sparse"
)

// holes is the archive of a file with holes, of which it has a map and what follows it.
func holes(t testing.TB, stored string, size int64) []byte {
	t.Helper()
	h := tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o644, Size: size}
	if i := strings.LastIndexByte(stored, '\n') + 1; i > 0 {
		padding := sparse.Padded(int64(i)) - int64(i)
		stored = stored[:i] + string(make([]byte, padding)) + stored[i:]
	}
	sparse.SetHeader(&h, int64(len(stored)))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&h))
	must(t, sparse.Show(b.Bytes()))
	_, err := w.Write([]byte(stored))
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func TestSparse(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		for _, test := range []struct {
			name, stored string
			size         int64
			want         string // the content; the error if it begins with a colon
		}{
			{"data between holes", "2\n2\n3\n10\n0\nabc", 10, "\x00\x00abc\x00\x00\x00\x00\x00"},
			{"no data", "1\n5\n0\n", 5, "\x00\x00\x00\x00\x00"},
			{"no hole", "1\n0\n3\nabc", 3, "abc"},
			{"no extents", "0\n", 3, "\x00\x00\x00"},
			{"no map", "", 3, ":does not end"},
			{"no number", "x\n", 3, ":a number belongs"},
			{"negative", "-1\n", 3, ":a number belongs"},
			{"without end", "1\n5\n", 5, ":does not end"},
			{"backwards", "2\n5\n1\n1\n1\nab", 10, ":an extent of"},
			{"overlapping", "2\n0\n5\n4\n1\nabcdef", 10, ":an extent of"},
			{"behind the end", "1\n5\n6\nabcdef", 10, ":an extent of"},
			{"overflow", "1\n9223372036854775807\n9223372036854775807\nabcdef", 10, ":an extent of"},
			{"too little data", "1\n0\n4\nabc", 10, ":bytes of data"},
			{"too much data", "1\n0\n2\nabc", 10, ":bytes of data"},
			{"endless number", strings.Repeat("1", 4000) + "\n", 10, ":does not end"},
			{"endless map", "9999999\n" + strings.Repeat("1\n0\n", 400_000), 10, ":does not end"},
		} {
			t.Run(test.name, func(t *testing.T) {
				dest := t.TempDir()
				_, err := unpackOn(t.Context(), on, bytes.NewReader(holes(t, test.stored, test.size)), Options{Dir: dest})
				if want, ok := strings.CutPrefix(test.want, ":"); ok {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want %q", err, want)
					}
					return
				}
				must(t, err)
				if b, err := os.ReadFile(filepath.Join(dest, "file")); err != nil || string(b) != test.want {
					t.Errorf("%q, %v, want %q", b, err, test.want)
				}
			})
		}
	})
}

// A hole takes no time, however large it is.
func TestLargestHole(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		dest := t.TempDir()
		begin := time.Now()
		for _, size := range []int64{1 << 42, math.MaxInt64} {
			_, err := unpackOn(t.Context(), on, bytes.NewReader(holes(t, "1\n0\n3\nabc", size)), Options{Dir: dest, Overwrite: true})
			// Few file systems have files of the largest size.
			if runtime.GOOS == "windows" && size == math.MaxInt64 {
				continue
			}
			if err != nil && !strings.Contains(err.Error(), syscall.EFBIG.Error()) && !strings.Contains(err.Error(), syscall.EINVAL.Error()) {
				t.Error(err)
			}
		}
		t.Log(time.Since(begin))
	})
}

// Zeros in a file become holes.
func TestZerosBecomeHoles(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		content := make([]byte, 8<<20+100)
		for _, at := range []int{0, 4095, 1 << 20, 5<<20 - 1, 8<<20 + 50} {
			content[at] = 'x'
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o644, Size: int64(len(content))}))
		_, err := w.Write(content)
		must(t, err)
		must(t, w.Close())
		dest := t.TempDir()
		_, err = unpackOn(t.Context(), on, &b, Options{Dir: dest})
		must(t, err)
		got, err := os.ReadFile(filepath.Join(dest, "file"))
		must(t, err)
		if !bytes.Equal(got, content) {
			t.Error("the content is different")
		}
		info, err := os.Stat(filepath.Join(dest, "file"))
		must(t, err)
		if size := allocated(info); size > 1<<20 {
			t.Errorf("it takes %d bytes on the disk", size)
		}
	})
}
