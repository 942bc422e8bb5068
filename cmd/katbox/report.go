package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// began is when the process began.
var began = time.Now()

// mostReported bounds how many volumes and mounts a report names.
const mostReported = 1000

// report writes a text for support: what this daemon is, how it was started, what it has, and how it
// is doing. A part that fails says so in its place.
func (i *instance) report(ctx context.Context, w io.Writer) error {
	for _, part := range []struct {
		title string
		write func(context.Context, io.Writer) error
	}{
		{"Katbox", i.reportProgram}, {"Flags", i.reportFlags}, {"Disk", i.reportDisk}, {"Volumes", i.reportVolumes},
		{"Volumes that are changing or stuck", i.reportUnrest}, {"Mounts", i.reportMounts},
		{"Volumes of arrays", i.reportArrays}, {"Pools on the node's disks", i.reportLocal}, {"Gateway", i.reportGateway},
		{"Archive", i.reportArchive},
		{"Controller of these pools", i.reportController}, {"Outcomes of pods", i.reportOutcomes}, {"Memory", reportMemory},
		{"Metrics", func(_ context.Context, w io.Writer) error { return i.counted.WriteText(w) }},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "## %s\n\n", part.title); err != nil {
			return err
		}
		if err := part.write(ctx, w); err != nil {
			fmt.Fprintf(w, "cannot be told: %s\n", volume.OneLine(err))
		}
		fmt.Fprintln(w)
	}
	return nil
}

func (i *instance) reportProgram(_ context.Context, w io.Writer) error {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return err
	}
	now := time.Now()
	fmt.Fprintf(w, "version   %s %s\ngo        %s %s/%s\nkernel    %s\nnode      %s\ntime      %s\nuptime    %s\n",
		version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, unix.ByteSliceToString(system.Release[:]),
		i.o.nodeID, now.UTC().Format(time.RFC3339), duration.Format(now.Sub(began).Round(time.Second)))
	if err := i.node.CheckPods(); err != nil {
		fmt.Fprintf(w, "pods      %s\n", volume.OneLine(err))
	}
	if err := i.registrar.Registered(); err != nil {
		fmt.Fprintf(w, "kubelet   %s\n", volume.OneLine(err))
	}
	return nil
}

// reportFlags writes the value of each flag. None is a secret: --otlp-endpoint takes no password.
func (i *instance) reportFlags(_ context.Context, w io.Writer) error {
	var o options
	flags := o.flags()
	o = i.o
	flags.VisitAll(func(flag *pflag.Flag) {
		fmt.Fprintf(w, "--%s=%s\n", flag.Name, flag.Value)
	})
	return nil
}

func (i *instance) reportDisk(_ context.Context, w io.Writer) error {
	space, err := i.dir.Space()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "bytes     %d of %d free\ninodes    %d of %d free\n",
		space.Free.Bytes, space.Total.Bytes, space.Free.Inodes, space.Total.Inodes)
	return nil
}

// reportVolumes writes how many volumes are in each phase, and how many of them are stuck.
func (i *instance) reportVolumes(_ context.Context, w io.Writer) error {
	var text bytes.Buffer
	if err := i.counted.WriteText(&text); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		for _, name := range []string{"katbox_volumes{", "katbox_stuck_volumes{", "katbox_parked_volumes ", "katbox_trash_"} {
			if strings.HasPrefix(line, name) {
				fmt.Fprint(w, line)
			}
		}
	}
	return nil
}

// reportUnrest writes which volumes are neither published nor retained: calls for them run, or
// something keeps them from going on.
func (i *instance) reportUnrest(ctx context.Context, w io.Writer) error {
	awake, err := i.node.Awake(ctx)
	if err != nil {
		return err
	}
	reported := 0
	for _, d := range awake {
		r := d.Record
		if r.Phase == volume.Published {
			continue
		}
		if reported++; reported > mostReported {
			continue
		}
		fmt.Fprintf(w, "%s %s/%s %s %s\n", r.Phase, r.Namespace, r.PodName, r.Pod, r.ID)
		for _, target := range r.Targets {
			fmt.Fprintf(w, "    %q leaving=%t\n", target.Path, target.Leaving)
		}
	}
	return more(w, reported)
}

// reportMounts writes which data directories are mounted, as the kernel tells it.
func (i *instance) reportMounts(_ context.Context, w io.Writer) error {
	bindings, err := i.bindings()
	if err != nil {
		return err
	}
	for _, b := range bindings[:min(len(bindings), mostReported)] {
		fmt.Fprintf(w, "%q on %q readOnly=%t\n", b.Source, b.Target, b.ReadOnly)
	}
	return more(w, len(bindings))
}

// more writes how many there are, and how many of them were left out.
func more(w io.Writer, count int) error {
	_, err := fmt.Fprintf(w, "%d in all, %d not shown\n", count, max(0, count-mostReported))
	return err
}

// reportMemory writes what the kernel and Go say of the daemon's memory.
func reportMemory(_ context.Context, w io.Writer) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if name, _, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Vm") || strings.HasPrefix(name, "Rss") || name == "Threads" {
			fmt.Fprint(w, line)
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(w, "heap in use %d, idle %d, released %d, next collection at %d bytes; %d goroutines\n",
		memory.HeapInuse, memory.HeapIdle, memory.HeapReleased, memory.NextGC, runtime.NumGoroutine())
	return nil
}
