package host

import (
	"os"
	"strings"
	"testing"
	"time"
)

// What a real kernel says, but for the name of the program.
const (
	procStat = "4711 (a (very) odd name) S 1 4711 4711 0 -1 1077936384 5361 0 12 0 1234 66 7 8 20 0 11 0 81 " +
		"1298472960 6144 18446744073709551615 1 1 0 0 0 0 0 0 2143420159 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	procStatus = "Name:\tkatbox\nState:\tS (sleeping)\nVmPeak:\t 1268040 kB\nVmHWM:\t   30000 kB\nVmRSS:\t   24576 kB\n" +
		"RssAnon:\t   10240 kB\nRssFile:\t   14336 kB\nThreads:\t11\nvoluntary_ctxt_switches:\t5\n"
)

func TestParseUsage(t *testing.T) {
	got, err := parseUsage(procStat, procStatus)
	want := Usage{CPU: 13 * time.Second, RSS: 24 << 20, Anonymous: 10 << 20, Peak: 30000 << 10, Threads: 11}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for name, test := range map[string]struct{ stat, status string }{
		"empty":        {"", ""},
		"short":        {"1 (x) S 1", procStatus},
		"no number":    {strings.Replace(procStat, "1234", "x", 1), procStatus},
		"zombie":       {procStat, "Name:\tkatbox\nState:\tZ (zombie)\nThreads:\t1\n"},
		"no threads":   {procStat, strings.Replace(procStatus, "Threads", "threads", 1)},
		"empty memory": {procStat, strings.Replace(procStatus, "24576 kB", "", 1)},
		"odd memory":   {procStat, strings.Replace(procStatus, "24576 kB", "many", 1)},
	} {
		if got, err := parseUsage(test.stat, test.status); err == nil {
			t.Errorf("%s: %+v, want an error", name, got)
		}
	}
}

func TestReadUsage(t *testing.T) {
	u, err := ReadUsage(os.Getpid())
	if err != nil || u.RSS == 0 || u.Anonymous == 0 || u.Peak < u.RSS || u.Threads == 0 {
		t.Errorf("of this process: %+v, %v", u, err)
	}
	if u, err := ReadUsage(-1); err == nil {
		t.Errorf("of no process: %+v, want an error", u)
	}
}
