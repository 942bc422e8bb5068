package host

import (
	"fmt"
	"os"
	"strconv"
)

// Descriptors is how many files a process has open.
func Descriptors(pid int) (int, error) {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0, fmt.Errorf("what process %d has open: %w", pid, err)
	}
	return len(entries), nil
}
