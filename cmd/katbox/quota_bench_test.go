package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/soak/testbed"
)

// cpu returns the CPU time that the daemon has used.
func (d *daemon) cpu() time.Duration {
	d.t.Helper()
	var sum time.Duration
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.process.PID()))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, task := range tasks {
		var ran int64
		content, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		if _, err := fmt.Sscan(string(content), &ran); err != nil {
			d.t.Fatal(err)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// sizeFrom is a number in the environment of a machine that is faster or slower than most.
func sizeFrom(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number above 0", variable, text)
	}
	return n
}

// dearest is how many times the CPU of a publish without a limit one with a limit may need.
const dearest = 1.1

// TestQuotaCostOfAPublish compares the CPU that the daemon needs for publishes with and without a limit.
// They take turns, so that a slow or busy machine is the same to both. A third kind is that of a daemon
// with --quota off on the same file system. A kernel that counts CPU time by clock ticks (User Mode Linux) counts
// too little for what sleeps between two of them, so there nothing is compared.
func TestQuotaCostOfAPublish(t *testing.T) {
	const batch, tick = 25, time.Millisecond
	rounds := sizeFrom(t, "KATBOX_QUOTA_ROUNDS", 20)
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		other := newLimitedNode(t, n.fileSystem)
		other.flags = append(other.flags, "--quota", "off")
		kinds := []struct {
			name, limit string
			node        *limitedNode
			cpu, took   []time.Duration
		}{{"--quota off", "", other, nil, nil}, {"no limit", "", n, nil, nil}, {"a limit", "1Mi", n, nil, nil}}
		for _, node := range []*limitedNode{n, other} {
			node.flags = append(node.flags, "--log-level", "info")
			node.start()
		}
		next := 0
		publish := func(kind int) {
			k := &kinds[kind]
			began, cpu := time.Now(), k.node.cpu()
			for range batch {
				next++
				k.node.mustPublish(podNamed(next), volumeID(next), k.limit, 0)
			}
			k.cpu = append(k.cpu, (k.node.cpu()-cpu)/batch)
			k.took = append(k.took, time.Since(began)/batch)
			for i := range batch {
				k.node.unpublish(podNamed(next-i), volumeID(next-i))
			}
		}
		for kind := range kinds { // not counted: what is first is not as the rest
			publish(kind)
			kinds[kind].cpu, kinds[kind].took = nil, nil
		}
		for round := range rounds {
			for i := range kinds {
				publish((round + i) % len(kinds))
			}
		}
		for _, k := range kinds {
			t.Logf("a publish, %s: %v of CPU, %v in all (medians of %d batches of %d)", k.name, middle(k.cpu), middle(k.took), rounds, batch)
		}
		off, without, with := middle(kinds[0].cpu), middle(kinds[1].cpu), middle(kinds[2].cpu)
		ratio := float64(with) / float64(without)
		t.Logf("a limit costs %.3f times no limit, and %.3f times --quota off", ratio, float64(with)/float64(off))
		if ratio > dearest && without*batch%tick != 0 {
			t.Errorf("a publish with a limit costs %.3f times one without, want at most %.1f times", ratio, dearest)
		}
	})
}

// TestQuotaCostOfStats measures stats of a volume with very many files, with a project and without, and of one with
// a single file. What a call takes is up to the machine, so the many files are compared with the single one.
func TestQuotaCostOfStats(t *testing.T) {
	files := sizeFrom(t, "KATBOX_QUOTA_FILES", 1_000_000)
	onQuotas(t, quota.Enforced, func(t *testing.T, n *limitedNode) {
		n.flags = append(n.flags, "--log-level", "info")
		n.start()
		var st unix.Statfs_t
		if err := unix.Statfs(n.workdir(), &st); err != nil {
			t.Fatal(err)
		}
		if files > int(st.Ffree) {
			t.Fatalf("the file system has room for %d files, want %d", st.Ffree, files)
		}
		n.mustPublish(podNamed(1), volumeID(1), "", 0)
		n.mustPublish(podNamed(2), volumeID(2), "", 0)
		began := time.Now()
		makeFiles(t, n.data(podNamed(2), volumeID(2)), files)
		t.Logf("%d files were made in %v", files, time.Since(began))

		probe := func() {
			if _, err := csi.NewIdentityClient(n.conn).Probe(t.Context(), &csi.ProbeRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		stats := func(volume, least int) func() {
			return func() {
				if _, inodes := n.stats(podNamed(volume), volumeID(volume)); inodes.Used < int64(least) {
					t.Fatalf("%d files, want %d", inodes.Used, least)
				}
			}
		}
		unix.Sync() // what the kernel writes later would slow some of them down
		took := medians(1000, probe, stats(1, 1), stats(2, files))
		one, many := took[1], took[2]
		t.Logf("median of a Probe %v, of NodeGetVolumeStats with one file %v, with %d files %v", took[0], one, files, many)
		if many > 2*one {
			t.Errorf("NodeGetVolumeStats takes %v with %d files and %v with one", many, files, one)
		}

		// The same files in a volume without a project.
		n.flags = append(n.flags, "--quota", "off")
		n.crash()
		n.mustPublish(podNamed(3), volumeID(3), "", 0)
		from, to := n.data(podNamed(2), volumeID(2)), n.data(podNamed(3), volumeID(3))
		testbed.Unforked(func() {
			for i := range (files + filesOfADirectory - 1) / filesOfADirectory {
				name := "/" + strconv.Itoa(i)
				if err := os.Rename(from+name, to+name); err != nil {
					t.Error(err)
				}
			}
		})
		t.Logf("NodeGetVolumeStats without a project: median with no file %v, with %d files %v", medians(1000, stats(2, 0))[0], files,
			medians(1, stats(3, files))[0])
	})
}

// medians does several things in turns, many times, and returns how long each takes.
func medians(times int, all ...func()) []time.Duration {
	took := make([][]time.Duration, len(all))
	for range times {
		for i, do := range all {
			began := time.Now()
			do()
			took[i] = append(took[i], time.Since(began))
		}
	}
	var medians []time.Duration
	for _, t := range took {
		medians = append(medians, middle(t))
	}
	return medians
}

// middle is the median. It sorts.
func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

const filesOfADirectory = 10_000

// makeFiles makes empty files in directories that are named 0, 1 and so on.
func makeFiles(t *testing.T, dir string, files int) {
	t.Helper()
	testbed.Unforked(func() {
		for first := 0; first < files; first += filesOfADirectory {
			name := dir + "/" + strconv.Itoa(first/filesOfADirectory)
			if err := unix.Mkdir(name, 0o700); err != nil {
				t.Error(err)
				return
			}
			at, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range min(filesOfADirectory, files-first) {
				if err := unix.Mknodat(at, strconv.Itoa(i), unix.S_IFREG|0o600, 0); err != nil {
					t.Error(err)
					break
				}
			}
			unix.Close(at)
		}
	})
}
