//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"testing"
)

// lines are what is printed at the end, and tables what is printed behind them.
var lines, tables []string

// report adds a line to the table at the end.
func report(what, format string, args ...any) {
	lines = append(lines, fmt.Sprintf("  %-50s %10s", what, fmt.Sprintf(format, args...)))
}

func TestMain(m *testing.M) {
	status := m.Run()
	if len(lines) > 0 {
		fmt.Println("\nMeasured:")
		for _, line := range lines {
			fmt.Println(line)
		}
	}
	for _, table := range tables {
		fmt.Printf("\n%s", table)
	}
	os.Exit(status)
}
