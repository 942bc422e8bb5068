package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/internal/node/policy"
)

const (
	keepLogs   = "on"
	keepNoLogs = "off"
	// mostOpenLogs bounds the files of logs that are held open: those of 1,000 pods with a few containers.
	mostOpenLogs = 8192
	// leastLogs is the lowest --logs-limit.
	leastLogs = 64 << 10
)

// logsOptions are the flags about what containers print.
type logsOptions struct{ keep, limit, dir string }

func (o *logsOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.keep, "logs", keepNoLogs,
		"whether what the containers of a pod print is kept as one more retained volume of it, "+volume.LogsName+": on or off")
	flags.StringVar(&o.limit, "logs-limit", "50Mi",
		"how many bytes of logs are kept of a pod, the end of the newest; a quantity, at least 64Ki")
	flags.StringVar(&o.dir, "pod-logs-dir", "/var/log/pods",
		"directory in which the kubelet has the logs of pods (its podLogsDir), with --logs=on")
}

func (o logsOptions) on() bool { return o.keep == keepLogs }

// check returns which flag is not acceptable.
func (o logsOptions) check() error {
	limit, err := policy.ParseQuantity(o.limit)
	switch {
	case o.keep != keepLogs && o.keep != keepNoLogs:
		return fmt.Errorf("--logs %q is neither %s nor %s", o.keep, keepLogs, keepNoLogs)
	case err != nil:
		return fmt.Errorf("--logs-limit %w", err)
	case limit < leastLogs:
		return fmt.Errorf("--logs-limit %q is less than 64Ki", o.limit)
	case !filepath.IsAbs(o.dir):
		return fmt.Errorf("--pod-logs-dir %q is not an absolute path", o.dir)
	}
	return nil
}

// bytes is --logs-limit, which was checked.
func (o logsOptions) bytes() int64 {
	limit, _ := policy.ParseQuantity(o.limit)
	return limit
}

// followLogs begins to follow the logs of pods.
func (i *instance) followLogs(context.Context) error {
	if !i.o.logs.on() {
		return nil
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("how many files may be open: %w", err)
	}
	logs, err := lastwords.Open(lastwords.Config{Dir: i.o.logs.dir, MostOpen: int(max(min(files.Cur/4, mostOpenLogs), 1)),
		Opened: i.counted.LogsOpen, Log: i.log})
	if err != nil {
		return fmt.Errorf("--pod-logs-dir: %w; mount it into the container, or set --logs=off", err)
	}
	i.logs = logs
	i.counted.LogsFollowed()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		logs.Run(ctx)
	}()
	i.onStop(func(ctx context.Context) error {
		cancel()
		select {
		case <-ended: // what a node that did not stop still reads stays open
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the logs of pods are still looked at, their disk may hang: %w", ctx.Err())
		}
	})
	return nil
}
