package main

import (
	"strings"
	"testing"
)

// TestLogsOptions: each flag is checked by itself, and nothing is kept without them.
func TestLogsOptions(t *testing.T) {
	var out strings.Builder
	o, err := parse([]string{"--nodeid", "n"}, &out)
	if err != nil || o.logs.on() || o.logs.bytes() != 50<<20 {
		t.Errorf("by default: %+v, %v", o.logs, err)
	}
	o, err = parse([]string{"--nodeid", "n", "--logs", "on", "--logs-limit", "64Ki", "--pod-logs-dir", "/data/logs"}, &out)
	if err != nil || !o.logs.on() || o.logs.bytes() != 64<<10 || o.logs.dir != "/data/logs" {
		t.Errorf("with all: %+v, %v", o.logs, err)
	}
	for args, want := range map[string]string{
		"--logs yes":          `--logs "yes" is neither on nor off`,
		"--logs-limit much":   `--logs-limit "much" is not a quantity`,
		"--logs-limit 1Ki":    `--logs-limit "1Ki" is less than 64Ki`,
		"--pod-logs-dir logs": `--pod-logs-dir "logs" is not an absolute path`,
	} {
		if _, err := parse(append([]string{"--nodeid", "n"}, strings.Fields(args)...), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
