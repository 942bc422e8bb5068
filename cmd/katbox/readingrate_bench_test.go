package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// contender is one of those that read the same, in turns.
type contender struct {
	name string
	// read reads everything once.
	read func()
}

// BenchmarkReadingFile compares, within one run, the rate of one stream of a large file with that of
// cat on the same file, in turns: with a file that is on the disk alone, and with one that is in
// memory. KATBOX_BENCH_MIB sets its size.
func BenchmarkReadingFile(b *testing.B) {
	megabytes := 1024
	if set, err := strconv.Atoi(os.Getenv("KATBOX_BENCH_MIB")); err == nil {
		megabytes = set
	}
	r := newReading(b, 2*megabytes+1024)
	id, dir := r.retain(func(dir string) { r.makeFile(filepath.Join(dir, "big"), int64(megabytes)<<20) })
	path := filepath.Join(dir, "big")
	r.race(b, float64(megabytes), "MiB/s", contender{"katbox", func() { r.reads("cat", id+":big") }},
		contender{"cat-to-pipe", func() { r.shell(`cat "$1" | cat >/dev/null`, path) }},
		contender{"cat", func() { r.shell(`exec cat "$1" >/dev/null`, path) }})
}

// BenchmarkReadingTree compares, within one run, the rate at which a volume of small files comes as
// a tar with that of tar on the same directory, in turns: with files that are on the disk alone, and
// with files that are in memory. KATBOX_BENCH_FILES sets their number.
func BenchmarkReadingTree(b *testing.B) {
	files := 100_000
	if set, err := strconv.Atoi(os.Getenv("KATBOX_BENCH_FILES")); err == nil {
		files = set
	}
	r := newReading(b, 2048+files/100)
	id, dir := r.retain(func(dir string) { r.makeTree(dir, files) })
	r.race(b, float64(files), "files/s", contender{"katbox", func() { r.reads("cp", id, "-") }},
		contender{"tar", func() { r.shell(`tar -C "$1" -cf - . | cat >/dev/null`, dir) }})
}

// makeTree makes small files of some sizes, a thousand in each directory.
func (r *reading) makeTree(dir string, files int) {
	r.b.Helper()
	content := make([]byte, 4096)
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("part-%03d", i/1000))
		if i%1000 == 0 {
			if err := os.Mkdir(sub, 0o755); err != nil {
				r.b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file-%d", i)), content[:i%len(content)], 0o644); err != nil {
			r.b.Fatal(err)
		}
	}
}

// race measures the first contender against each other one, cold and warm.
func (r *reading) race(b *testing.B, amount float64, unit string, list ...contender) {
	for b.Loop() {
		for _, state := range []struct {
			name    string
			prepare func()
		}{
			{"cold", r.dropCaches},
			{"warm", list[len(list)-1].read},
		} {
			seconds := make([][]float64, len(list))
			for turn := range turns {
				for n := range list {
					i := (turn + n) % len(list) // another one goes first each time
					state.prepare()
					began := time.Now()
					list[i].read()
					seconds[i] = append(seconds[i], time.Since(began).Seconds())
				}
			}
			for i, c := range list {
				var ratios []float64
				for turn := range turns {
					ratios = append(ratios, seconds[i][turn]/seconds[0][turn])
				}
				if i > 0 {
					b.ReportMetric(median(ratios), state.name+"-ratio-to-"+c.name)
				}
				b.ReportMetric(amount/median(seconds[i]), state.name+"-"+unit+"-"+c.name)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.d.memory("VmHWM"), "MiB-peak")
}

// dropCaches makes the kernel forget what it has read, from the file system and from the image that
// this is on.
func (r *reading) dropCaches() {
	r.b.Helper()
	syncFS(r.b, r.work)
	if err := writeExisting("/proc/sys/vm/drop_caches", "3"); err != nil {
		r.b.Skipf("the caches cannot be dropped here: %v", err)
	}
}

func (r *reading) reads(name string, args ...string) {
	r.b.Helper()
	if err := r.verb(r.b.Context(), name, args...).Run(); err != nil {
		r.b.Fatalf("%s %q: %v", name, args, err)
	}
}

func (r *reading) shell(script, path string) {
	r.b.Helper()
	if out, err := exec.CommandContext(r.b.Context(), "sh", "-c", script, "sh", path).CombinedOutput(); err != nil {
		r.b.Fatalf("%s: %v: %s", script, err, out)
	}
}
