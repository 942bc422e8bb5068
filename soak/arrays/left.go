package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/pause"
)

// settling is how long what is left may take to go, after the last volume was deleted.
const settling = time.Minute

// nothingLeft looks whether all volumes went with all that they had, on the node, on the array, and among
// the resources.
func (r *run) nothingLeft(ctx context.Context) {
	var left []leftover
	for end := time.Now().Add(settling); ; {
		left = left[:0]
		for _, look := range []func(context.Context) ([]leftover, error){r.leftOnNode, r.leftOnArray, r.leftResources} {
			some, err := look(ctx)
			left = append(left, some...)
			if err != nil {
				left = append(left, leftover{history.Completed, err.Error()})
			}
		}
		if len(left) == 0 {
			return
		}
		// After a life that ended early there is always something.
		if r.found.Sum() > 0 || time.Now().After(end) || pause.For(ctx, time.Second) != nil {
			break
		}
	}
	for _, one := range left {
		r.found.broken(one.promise, nil, "left at the end: %s", one.what)
	}
}

// leftover is something that is left, and the promise that it breaks.
type leftover struct {
	promise history.Promise
	what    string
}

func (r *run) leftOnNode(context.Context) (left []leftover, err error) {
	mounts, err := host.MountsBelow(r.node.root)
	for _, m := range mounts {
		left = append(left, leftover{history.NoLeak, "mounted: " + m.Point})
	}
	for what, pattern := range map[string]string{
		"iSCSI session":       "/sys/class/iscsi_session/session*",
		"SCSI device":         "/sys/class/scsi_disk/*",
		"record":              filepath.Join(r.programs.staged, "*"),
		"staging directory":   filepath.Join(r.node.root, "plugins/kubernetes.io/csi", driverName, "*"),
		"staged device":       filepath.Join(r.node.root, "plugins/kubernetes.io/csi/volumeDevices/*/*"),
		"directory of a pod":  filepath.Join(r.node.root, "pods/*"),
		"initiator's record":  "/etc/iscsi/nodes/*",
		"initiator's record ": "/var/lib/iscsi/nodes/*",
	} {
		paths, globErr := filepath.Glob(pattern)
		err = errors.Join(err, globErr)
		for _, path := range paths {
			left = append(left, leftover{history.NoLeak, strings.TrimSpace(what) + " " + path})
		}
	}
	if entries, readErr := os.ReadDir(r.outside); readErr != nil || len(entries) != 0 {
		left = append(left, leftover{history.Contained, fmt.Sprintf("outside of the volumes is %v, %v", entries, readErr)})
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return left, err
}

func (r *run) leftOnArray(ctx context.Context) (left []leftover, err error) {
	has, err := r.array.state(ctx)
	for _, v := range has.Volumes {
		left = append(left, leftover{Once, fmt.Sprintf("volume %s (%s) on the array", v.ID, v.Name)})
	}
	for _, s := range has.Servers {
		left = append(left, leftover{Once, fmt.Sprintf("server record %s (%s) on the array", s.ID, s.Name)})
	}
	for _, s := range has.Snapshots {
		left = append(left, leftover{Once, fmt.Sprintf("snapshot %s (%s) on the array", s.ID, s.Name)})
	}
	return left, err
}

func (r *run) leftResources(ctx context.Context) (left []leftover, err error) {
	for _, resource := range []string{"poolvolumes", "poolsnapshots", "poolattachments"} {
		all, listErr := r.kube.list(ctx, resource)
		err = errors.Join(err, listErr)
		for _, o := range all {
			left = append(left, leftover{Once, fmt.Sprintf("%s %s with the finalizers %q", resource, o.Metadata.Name, o.Metadata.Finalizers)})
		}
	}
	return left, err
}
