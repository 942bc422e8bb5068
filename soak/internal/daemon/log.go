package daemon

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// longestQuote is how much of the daemon's log a story quotes, in bytes.
	longestQuote = 4096
	// longestGoroutines is how much it quotes of the goroutines of a daemon that did not go on.
	longestGoroutines = 32 << 10
	// longestDump is how far from its end a panic is looked for. All goroutines
	// follow it, and there may be tens of thousands.
	longestDump = 32 << 20
)

// quoteEnd is the end of a log, for a story, of what was written after the first bytes.
func quoteEnd(path string, first int64) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	begin := min(max(first, info.Size()-longestDump), info.Size())
	text, err := io.ReadAll(io.NewSectionReader(f, begin, info.Size()-begin))
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	return "the end of its log:\n" + lastWords(string(text))
}

// lastWords is what a log says last: its end, or the beginning of a panic,
// which says more than the last of the goroutines that are listed after it. What
// [stuck] had it write is quoted at more length, with what came before.
func lastWords(log string) string {
	log = strings.TrimRight(log, "\n")
	for _, start := range []string{"panic: ", "fatal error: "} {
		if i := strings.LastIndex("\n"+log, "\n"+start); i >= 0 {
			return log[i:min(i+longestQuote, len(log))]
		}
	}
	if i := strings.LastIndex("\n"+log, "\nSIGQUIT: quit"); i >= 0 {
		return log[max(0, i-longestQuote):min(i+longestGoroutines, len(log))]
	}
	return log[max(0, len(log)-longestQuote):]
}
