package attachtest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// writerVariable names the file that a writer's process writes.
const writerVariable = "KATBOX_TEST_WRITER"

// Main runs the tests of a package that has writers.
func Main(m *testing.M) {
	BecomeWriter()
	os.Exit(m.Run())
}

// BecomeWriter is for a TestMain that does more: in a writer's process it writes, and does not return.
func BecomeWriter() {
	path := os.Getenv(writerVariable)
	if path == "" {
		return
	}
	if err := writes(path, os.Stdin, os.Stdout); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// block is what a writer writes at once, pause how long it rests then: it is not to fill the volume.
const (
	block = 4096
	pause = 10 * time.Millisecond
)

// writes appends blocks of random bytes to a file, each made durable, until its input ends. It tells the
// number of each, and in the end the sum of all.
func writes(path string, in io.Reader, out io.Writer) error {
	flags := os.O_WRONLY
	// A device is there already, and must not become a file where it is not.
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var end atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end.Store(true)
	}()
	sum, random, data := sha256.New(), rand.NewChaCha8(sha256.Sum256([]byte(path))), make([]byte, block)
	for n := 1; !end.Load(); n++ {
		_, _ = random.Read(data)
		_, _ = sum.Write(data)
		if _, err := f.Write(data); err != nil {
			return fmt.Errorf("block %d: %w", n, err)
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("block %d: %w", n, err)
		}
		fmt.Fprintln(out, "block", n)
		time.Sleep(pause)
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Fprintln(out, "sum", hex.EncodeToString(sum.Sum(nil)))
	return nil
}

// Writer is a process that writes to a file, as dd does that waits for each block to be durable. It is a
// process of its own because a process that has files of an array open cannot start others while the array is
// away: they begin with closing these files, which waits.
type Writer struct {
	path    string
	input   io.Closer
	blocks  atomic.Int64
	longest atomic.Int64
	done    chan struct{}
	// sum and err are set when done is closed.
	sum string
	err error
}

// StartWriter starts a writer, which ends with the test. The package's TestMain calls [Main].
func StartWriter(t testing.TB, path string) *Writer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{path: path, done: make(chan struct{})}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), writerVariable+"="+path)
	if w.input, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.done)
		w.follow(out)
		if err := cmd.Wait(); err != nil && w.err == nil {
			w.err = err
		}
	}()
	t.Cleanup(func() {
		_ = w.input.Close()
		select {
		case <-w.done:
		case <-time.After(2 * time.Minute):
			t.Errorf("the writer to %s does not end", path)
		}
	})
	return w
}

func (w *Writer) follow(out io.Reader) {
	last := time.Now()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "block":
			w.longest.Store(max(w.longest.Load(), int64(time.Since(last))))
			last = time.Now()
			w.blocks.Add(1)
		case "sum":
			w.sum = rest
		case "error":
			w.err = fmt.Errorf("writing to %s: %s", w.path, rest)
		}
	}
}

// Blocks returns how many blocks are durable.
func (w *Writer) Blocks() int64 { return w.blocks.Load() }

// Longest returns the longest time that a block took.
func (w *Writer) Longest() time.Duration { return time.Duration(w.longest.Load()) }

// More waits until the writer has written some more blocks.
func (w *Writer) More(t testing.TB) {
	t.Helper()
	from := w.Blocks()
	Eventually(t, "more is written to "+w.path, func() bool {
		select {
		case <-w.done:
			t.Fatalf("the writer has ended: %v", w.err)
		default:
		}
		return w.Blocks() > from+5
	})
}

// End ends the writer, and compares what the file has with what was written. It fails the test if a write
// has failed.
func (w *Writer) End(t testing.TB) {
	t.Helper()
	_ = w.input.Close()
	Eventually(t, "the writer to "+w.path+" ends", func() bool {
		select {
		case <-w.done:
			return true
		default:
			return false
		}
	})
	if w.err != nil {
		t.Errorf("after %d blocks: %v", w.Blocks(), w.err)
		return
	}
	w.Check(t, w.path)
}

// Check compares a file, or the beginning of a device, with what was written.
func (w *Writer) Check(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.CopyN(sum, f, w.Blocks()*block)
	if err != nil {
		t.Errorf("reading %s, after %d bytes of %d: %v", path, n, w.Blocks()*block, err)
		return
	}
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() && info.Size() != n {
		t.Errorf("%s has %d bytes instead of %d, %v", path, info.Size(), n, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != w.sum {
		t.Errorf("the %d blocks of %s have the sum %s, but %s was written", w.Blocks(), path, got, w.sum)
	}
}

// Eventually waits for something for two minutes at most, or longer on a slow machine; see [roottest.Hangs].
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * roottest.Hangs); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", 2*roottest.Hangs, what)
		}
	}
}
