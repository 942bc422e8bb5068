package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestNoexec: pods can execute files in a volume, as in an emptyDir, even if the working
// directory is on a file system that is mounted noexec, as /var is on some nodes.
func TestNoexec(t *testing.T) {
	tests := []struct {
		name       string
		mountFlags uintptr
		flags      []string
		request    []string
		refused    bool
		says       string
	}{
		{name: "cleared", mountFlags: unix.MS_NOEXEC, says: "it is cleared for volumes"},
		{name: "kept for all", mountFlags: unix.MS_NOEXEC, flags: []string{"--keep-noexec"}, refused: true, says: "volumes keep it"},
		{name: "kept for one", mountFlags: unix.MS_NOEXEC, request: []string{"noexec"}, refused: true, says: "it is cleared for volumes"},
		{name: "asked for", mountFlags: unix.MS_NOEXEC, request: []string{"exec"}, says: "it is cleared for volumes"},
		{name: "asked for, where all keep it", mountFlags: unix.MS_NOEXEC, flags: []string{"--keep-noexec"},
			request: []string{"exec"}, says: "volumes keep it"},
		{name: "not there", request: []string{"exec"}},
		{name: "not there to be kept", flags: []string{"--keep-noexec"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDaemon(t, tt.flags...)
			if err := os.Mkdir(d.workdir(), 0o750); err != nil {
				t.Fatal(err)
			}
			roottest.Tmpfs(t, d.workdir(), tt.mountFlags)
			d.start()
			request := d.request(testPod, volumeID(1))
			request.VolumeCapability.GetMount().MountFlags = tt.request
			for range 2 { // the kubelet repeats its calls
				if _, err := d.node.NodePublishVolume(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			script := filepath.Join(d.target(testPod), "script")
			if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command(script).Run(); tt.refused != errors.Is(err, unix.EACCES) || !tt.refused && err != nil {
				t.Errorf("execute a file of the volume: %v; want it refused: %t", err, tt.refused)
			}
			d.unpublish(testPod, volumeID(1))
			d.signal(unix.SIGTERM)
			var said []string
			for line := range strings.Lines(d.stdout.String()) {
				if strings.Contains(line, `"noexec`) || strings.Contains(line, "mounted noexec") {
					said = append(said, line)
				}
			}
			switch {
			case tt.says == "" && len(said) > 0:
				t.Errorf("the log says %q of noexec", said)
			case tt.says != "" && (len(said) != 1 || !strings.Contains(said[0], tt.says) || !strings.Contains(said[0], `"level":"info"`)):
				t.Errorf("the log says %q, want one line at level info with %q", said, tt.says)
			}
		})
	}
}
