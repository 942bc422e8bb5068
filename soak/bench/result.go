package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
)

// result is everything that was measured.
type result struct {
	Machine  machineInfo `json:"machine"`
	Rounds   int         `json:"rounds"`
	Flags    []string    `json:"flags"`
	Points   []point     `json:"points"`
	Lateness *lateness   `json:"lateness,omitempty"`
	Burst    *burst      `json:"burst,omitempty"`
}

// machineInfo is what it was measured on.
type machineInfo struct {
	Date       string `json:"date"`
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	FileSystem string `json:"fileSystem"`
}

func machine(disk *host.Disk) machineInfo {
	m := machineInfo{Date: time.Now().Format(time.DateOnly), Cores: runtime.NumCPU(), FileSystem: string(disk.Kind())}
	if disk.Kind() == host.Ext4 {
		m.FileSystem += " with a journal on a loop device"
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

func (m machineInfo) String() string {
	return fmt.Sprintf("%s, %d cores, Linux %s, %s", m.Date, m.Cores, m.Kernel, m.FileSystem)
}

func (x *result) writeJSON(path string) error {
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
