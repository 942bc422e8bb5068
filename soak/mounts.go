package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// mountsBelow returns the mount points below dir (not dir itself) in a text in
// the format of /proc/self/mountinfo. A mount point shows once for each mount
// that is stacked on it.
func mountsBelow(mountinfo, dir string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		const mountPoint = 4
		if len(fields) <= mountPoint {
			continue
		}
		if path := unescape(fields[mountPoint]); strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
			found = append(found, path)
		}
	}
	return found
}

// unescape undoes the kernel's octal escapes of blanks and backslashes.
func unescape(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// leakedMounts returns the mounts below dir in this process's namespace.
func leakedMounts(dir string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	return mountsBelow(string(text), dir), nil
}
