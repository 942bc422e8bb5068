package dataloss

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// TestNothingForeignIsDeleted has what other drivers, and the tools before them,
// have lost data by. The daemon deletes neither what is not its own nor what it
// cannot be sure of.
func TestNothingForeignIsDeleted(t *testing.T) {
	t.Parallel()
	for _, way := range []way{
		{"a symlink as the data directory", linkAsData},
		{"a symlink as the directory of the pod", linkAsPod},
		{"a symlink as the directory of a pod to come", linkAsNewPod},
		{"symlinks inside a volume", linksInside},
		{"a symlink as the target", linkAsTarget},
		{"a symlink to the target of another pod", linkToOtherTarget},
		{"a symlink on the way to the target", linkBeforeTarget},

		{"a mount on the data directory", mountOnData},
		{"a mount on the directory of the pod", mountOnPod},
		{"the data mounted elsewhere", dataMountedElsewhere},
		{"a directory of it still mounted", subpathMounted},
		{"a published volume mounted inside", volumeInside},
		{"the mount moved elsewhere", mountMoved},
		{"the mount moved elsewhere before a kill", mountMovedAndKilled},
		{"the target covered", targetCovered},
		{"something else on the target", foreignTarget},

		{"killed while an unmount fails", killedWhileBusy},
		{"killed after an unmount", killedAfterUnmount},
		{"killed before a deadline", killedBeforeDeadline},
		{"killed in a deletion", killedInDeletion},
		{"the records gone", recordsGone},
		{"a second daemon", secondDaemon},
		{"the directory of the pod moved", podMoved},

		{"unpublished at a wrong target", wrongTarget},
		{"unpublished at the target of another", othersTarget},
		{"published with no directory for the target", noParent},

		{"names that the driver has for itself", reservedNames},
		{"names that others have", namesOfOthers},
		{"a pod called lost+found", podLostAndFound},
		{"strangers in the working directory", strangers},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			way.runWithDaemon(t)
		})
	}
}

// whileRetained makes a retained volume and does something to it. On a machine
// that is so slow that the volume has expired by then, it takes another one.
func (n *node) whileRetained(do func(vol) error) vol {
	n.t.Helper()
	for {
		v := n.live()
		began := time.Now()
		n.try(n.unpublish(v))
		n.expendable(v)
		err := do(v)
		if !errors.Is(err, fs.ErrNotExist) || time.Since(began) < n.lifespan {
			n.try(err)
			return v
		}
	}
}

// restart is a crash and a start.
func (n *node) restart() {
	n.t.Helper()
	n.kill()
	n.start()
}

// says waits until the daemon's log tells of something.
func (n *node) says(what string) {
	n.t.Helper()
	if n.daemon == nil {
		return
	}
	n.eventually(fmt.Sprintf("the log says %q", what), func() bool {
		log, err := os.ReadFile(n.layout.Log)
		n.try(err)
		return strings.Contains(string(log), what)
	})
}
