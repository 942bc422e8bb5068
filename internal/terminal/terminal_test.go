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
		3*time.Hour + 59*time.Minute: "3h",
		47 * time.Hour:               "47h", 48 * time.Hour: "2d", 300 * 24 * time.Hour: "300d",
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
	table.Row("größer", "1.0 KiB", "a\x1b[2J")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	table.Row("x", "0 B", Quote(`b\`))
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "POD     SIZE     NAME\ngrößer  1.0 KiB  a\\x1b[2J\nx       0 B      b\\\\\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	now := time.Unix(1000, 0)
	p := newProgress(&b, func() time.Time { return now }, "out\x1b.log", 50<<20, 200<<20)
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
	p = newProgress(&b, func() time.Time { return now }, "x", 0, 0)
	now = now.Add(time.Second)
	if _, err := fmt.Fprint(p, "12345"); err != nil || b.String() != clearLine+"x: 5 B, 5 B/s" {
		t.Errorf("got %q, %v", &b, err)
	}
	var none *Progress
	none.Add(1)
	none.End()
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
