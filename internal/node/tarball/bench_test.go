package tarball

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// BenchmarkWrite archives a directory of small files and lets GNU tar do the same, in turns. Both
// write to a pipe, as the daemon writes to a socket. "x-tar" is how many times the files per second
// of tar Write does: above 1, Write is faster. KATBOX_BENCH_FILES sets how many files there are.
func BenchmarkWrite(b *testing.B) {
	count := 100_000
	if text := os.Getenv("KATBOX_BENCH_FILES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			b.Fatalf("KATBOX_BENCH_FILES: %v", err)
		}
	}
	for _, size := range []int{100, 4000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) { benchmarkWrite(b, count, size) })
	}
}

func benchmarkWrite(b *testing.B, count, size int) {
	dir := b.TempDir()
	content := make([]byte, size)
	for i := range count {
		sub := filepath.Join(dir, strconv.Itoa(i/1000))
		if i%1000 == 0 {
			must(b, os.Mkdir(sub, 0o755))
		}
		must(b, os.WriteFile(filepath.Join(sub, fmt.Sprintf("file-%d", i)), content, 0o644))
	}
	r := reading(b, dir)
	var ours, theirs time.Duration
	for turn := range 2 * b.N {
		b.StopTimer()
		// What one has read is in memory for the other, so who begins changes.
		if (turn+turn/2)%2 == 1 {
			start := time.Now()
			tar := exec.Command("sh", "-c", `tar -C "$1" -cf - . | cat >/dev/null`, "sh", dir)
			if out, err := tar.CombinedOutput(); err != nil {
				b.Fatalf("tar: %v: %s", err, out)
			}
			theirs += time.Since(start)
			continue
		}
		start := time.Now()
		b.StartTimer()
		cat := exec.Command("cat")
		pipe, err := cat.StdinPipe()
		must(b, err)
		must(b, cat.Start())
		_, err = Write(context.Background(), pipe, r, Options{})
		must(b, err)
		must(b, pipe.Close())
		must(b, cat.Wait())
		b.StopTimer()
		ours += time.Since(start)
	}
	b.ReportMetric(float64(count*b.N)/ours.Seconds(), "files/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "x-tar")
}
