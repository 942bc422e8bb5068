package wallclock

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const tenYears = 3652 * 24 * time.Hour

// running is the obedient program under a clock.
type running struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

// start starts the obedient program until the end of the test.
func start(t testing.TB, c *Clock) *running {
	t.Helper()
	needRights(t)
	r := &running{t: t, cmd: program("obedient")}
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewReader(out)
	if err := c.Start(r.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	return r
}

// order has the program do something and returns its answer.
func (r *running) order(what string) string {
	r.t.Helper()
	fmt.Fprintln(r.stdin, what)
	return r.line()
}

func (r *running) line() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read the program's answer: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// checkTime has the program read its clock, which has to be the machine's plus
// the offset, and returns how long the program thinks it has been running.
func (r *running) checkTime(offset time.Duration) time.Duration {
	r.t.Helper()
	before := time.Now()
	answer := r.order("time")
	after := time.Now()
	var wall int64
	var age time.Duration
	if _, err := fmt.Sscan(answer, &wall, &age); err != nil {
		r.t.Fatalf("%q: %v", answer, err)
	}
	if now := time.Unix(0, wall); now.Before(before.Add(offset)) || now.After(after.Add(offset)) {
		r.t.Errorf("the program's time is %v, want between %v and %v", now, before.Add(offset), after.Add(offset))
	}
	return age
}

func TestOffsetFromTheStart(t *testing.T) {
	for _, offset := range []time.Duration{0, tenYears, -tenYears, -100 * 365 * 24 * time.Hour} {
		t.Run(offset.String(), func(t *testing.T) {
			var c Clock
			c.Set(offset)
			if c.Offset() != offset {
				t.Errorf("the offset is %v, want %v", c.Offset(), offset)
			}
			start(t, &c).checkTime(offset)
			// The same program again, as after a crash.
			start(t, &c).checkTime(offset)
		})
	}
}

// TestSteps steps the clock while the program runs, which must notice by its
// wall clock and by nothing else.
func TestSteps(t *testing.T) {
	var c Clock
	r := start(t, &c)
	for _, offset := range []time.Duration{0, tenYears, -tenYears, 0, -time.Nanosecond, time.Hour} {
		atMostFrom := time.Now()
		was := r.checkTime(c.Offset())
		atLeastFrom := time.Now()
		c.Set(offset)
		time.Sleep(20 * time.Millisecond)
		atLeast := time.Since(atLeastFrom)
		elapsed := r.checkTime(offset) - was
		if atMost := time.Since(atMostFrom); elapsed < atLeast || elapsed > atMost {
			t.Errorf("set to %v: %v passed for the program, want between %v and %v", offset, elapsed, atLeast, atMost)
		}
	}
}

func TestTimersKeepTheirTime(t *testing.T) {
	for _, offset := range []time.Duration{tenYears, -tenYears} {
		var c Clock
		r := start(t, &c)
		r.checkTime(0)
		began := time.Now()
		fmt.Fprintln(r.stdin, "nap")
		time.Sleep(50 * time.Millisecond)
		c.Set(offset)
		r.line()
		if took := time.Since(began); took < 300*time.Millisecond || took > 2*time.Minute {
			t.Errorf("set to %v: a timer of 300ms took %v", offset, took)
		}
	}
}

// TestOtherQuestions asks for the time in all the ways that Go does not use.
func TestOtherQuestions(t *testing.T) {
	for _, offset := range []time.Duration{0, tenYears} {
		var c Clock
		c.Set(offset)
		r := start(t, &c)
		// The coarse clock may be a tick late.
		earliest := time.Now().Add(offset).Add(-time.Second).Unix()
		answers := strings.Fields(strings.Trim(r.order("whole"), "[]"))
		if len(answers) != len(wholeQuestions) {
			t.Fatalf("%d answers, want %d", len(answers), len(wholeQuestions))
		}
		for _, answer := range append(answers, r.order("coarse")) {
			var seconds int64
			if _, err := fmt.Sscan(answer, &seconds); err != nil {
				t.Fatal(err)
			}
			if latest := time.Now().Add(offset).Unix(); seconds < earliest || seconds > latest {
				t.Errorf("the program's time is %d, want between %d and %d", seconds, earliest, latest)
			}
		}
		if r.order("nowhere") != "true" {
			t.Error("asking for the time at an address that is not mapped did not fail with EFAULT")
		}
	}
}

// TestTwoClocks checks that a clock has no effect on what is under another one.
func TestTwoClocks(t *testing.T) {
	var fast, slow Clock
	fast.Set(tenYears)
	slow.Set(-tenYears)
	a, b, again := start(t, &fast), start(t, &slow), start(t, &fast)
	a.checkTime(tenYears)
	b.checkTime(-tenYears)
	again.checkTime(tenYears)
}

// BenchmarkNow is the cost of a question, of the answer and of all the switches
// in between, without and with an offset.
func BenchmarkNow(b *testing.B) {
	for _, offset := range []time.Duration{0, tenYears} {
		b.Run(offset.String(), func(b *testing.B) {
			var c Clock
			c.Set(offset)
			r := start(b, &c)
			b.ResetTimer()
			fmt.Fprintln(r.stdin, "ask", b.N)
			r.line()
		})
	}
}
