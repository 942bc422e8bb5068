package terminal

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10188: "9.9 KiB", 10189: "10 KiB",
		1023 << 10: "1023 KiB", 1<<20 - 1: "1.0 MiB", 980 << 20: "980 MiB", 1288490189: "1.2 GiB", 1 << 40: "1.0 TiB", math.MaxInt64: "8.0 EiB",
	} {
		if got := Size(bytes); got != want {
			t.Errorf("Size(%d) = %s, want %s", bytes, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "100": 100, "100B": 100, "64Ki": 65536, "64KiB": 65536, "64k": 64000, "5M": 5e6, "1Gi": 1 << 30, "2Ti": 2 << 40,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "K", "-1", "1.5Ki", "1 Ki", "1Kik", "1i",
		"9223372036854775808", "9223372036854775807Ki", "0x10", "1e3", "1\n"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestAges(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m",
		3*time.Hour + 59*time.Minute: "3h59m", 12*time.Hour - 2*time.Second: "11h59m", 12*time.Hour + 59*time.Second: "12h",
		47 * time.Hour: "47h", 48 * time.Hour: "2d", 71*time.Hour + 59*time.Minute: "2d23h", 72 * time.Hour: "3d",
		240*time.Hour - 1: "9d23h", 240 * time.Hour: "10d", 300*24*time.Hour + time.Hour: "300d",
	} {
		if got := Ago(now, now.Add(-d)); got != want+" ago" {
			t.Errorf("Ago of %v is %q, want %s ago", d, got, want)
		}
		until := "in " + want
		if d <= 0 {
			until = "now"
		}
		if got := In(now, now.Add(d)); got != until {
			t.Errorf("In of %v is %q, want %s", d, got, until)
		}
	}
	if Ago(now, time.Time{}) != Unknown || In(now, time.Time{}) != Unknown {
		t.Error("an unknown time has an age")
	}
}

func TestTableWritesPagesWithTheSameColumns(t *testing.T) {
	var b strings.Builder
	table := NewTable(&b, "POD", "SIZE", "NAME")
	table.Row("größer日", "1.0 KiB", "a\x1b[2J")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	table.Row("x", "0 B", Quote(`b\`))
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "POD       SIZE     NAME\ngrößer日  1.0 KiB  a\\x1b[2J\nx         0 B      b\\\\\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	now := time.Unix(1000, 0)
	wide := func() int { return 100 }
	p := newProgress(&b, func() time.Time { return now }, wide, "out\x1b.log", 50<<20, 200<<20)
	now = now.Add(time.Second)
	p.Add(50 << 20)
	p.Add(1) // too soon to be shown
	want := clearLine + `out\x1b.log: 50 %, 100 MiB, 50 MiB/s`
	if b.String() != want {
		t.Errorf("got %q, want %q", &b, want)
	}
	p.End()
	p.End()
	if b.String() != want+clearLine {
		t.Errorf("got %q", &b)
	}
	b.Reset()
	p = newProgress(&b, func() time.Time { return now }, wide, "x", 0, 0)
	now = now.Add(time.Second)
	if _, err := fmt.Fprint(p, "12345"); err != nil || b.String() != clearLine+"x: 5 B, 5 B/s" {
		t.Errorf("got %q, %v", &b, err)
	}
	var none *Progress
	none.Add(1)
	none.End()
}

// TestProgressFits: whatever the width, also if it changes, the line is shorter.
func TestProgressFits(t *testing.T) {
	const name = "nightly-29000000-x7k2p/日本語/out/log.txt"
	now, columns := time.Unix(1000, 0), 0
	p := newProgress(nil, func() time.Time { return now }, func() int { return columns }, name, 50<<20, 200<<20)
	now = now.Add(time.Second)
	p.done += 50 << 20
	for columns = range 80 {
		if line := p.line(now); Width(line) >= max(1, columns) {
			t.Errorf("%d columns: %q has %d", columns, line, Width(line))
		}
	}
	for at, want := range map[int]string{
		80: name + ": 50 %, 100 MiB, 50 MiB/s", 60: "nightly-29000000...語/out/log.txt: 50 %, 100 MiB, 50 MiB/s",
		40: "nightl...g.txt: 50 %, 100 MiB, 50 MiB/s", 30: "50 %, 100 MiB, 50 MiB/s", 20: "50 %, 100 MiB", 10: "50 %", 3: "50", 1: "", 0: "",
	} {
		if columns = at; p.line(now) != want {
			t.Errorf("%d columns: %q, want %q", at, p.line(now), want)
		}
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "größer": 6, "日本語": 6, "ｆ": 2, "e\u0301": 1, "🙂x": 3, `\x1b`: 4} {
		if got := Width(text); got != want {
			t.Errorf("Width(%q) is %d, want %d", text, got, want)
		}
	}
	for columns, want := range map[int]string{
		-1: "", 0: "", 2: "..", 3: "...", 4: "a...", 5: "a...h", 6: "a...h", 7: "a...gh", 8: "a日...gh", 12: "a日本cdefgh",
	} {
		if got := Shorten("a日本cdefgh", columns); got != want {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
}

func TestIsTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) || IsTerminal(&bytes.Buffer{}) || IsTerminal(nil) || IsTerminal((*os.File)(nil)) {
		t.Error("something else is taken for a terminal")
	}
	if NewProgress(null, "x", 0, 0) != nil {
		t.Error("progress is shown elsewhere than on a terminal")
	}
}
