package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

const (
	// longestPodsInterval bounds how late a pod directory's end is noticed.
	longestPodsInterval = time.Minute
	// orphanInterval is how often the working directory is searched for data directories without a
	// record. They are rare: a person restored a backup, a record could not be read.
	orphanInterval = time.Hour
	// orphanBatch bounds how many of them are looked up or adopted at once.
	orphanBatch = 256
	// orphanRest is how long all searches except the first rest after each batch, which takes some five
	// milliseconds of CPU: there may be a million directories, and a node at rest must not notice.
	orphanRest = 4 * time.Second
)

// watch finds what no call reports: pods that the kubelet forgot, and data directories without a record.
type watch struct {
	*environment
	// setPodsError takes the reason why the pods directory cannot be read.
	setPodsError func(error)
	// unreadable is why the pods directory could not be read the last time.
	unreadable string
	// nextMounts is when the mount table is read next for volumes that are mounted nowhere.
	nextMounts time.Time
	// foreign is what the present search leaves alone, loggedForeign what was logged of the last one.
	foreign, loggedForeign foreign
	// searched: the working directory was searched once since the start. left: that search has left directories to the
	// kubelet.
	searched, left bool
}

// every calls f at once and again an interval after it has returned, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	for {
		f()
		if retry.Pause(ctx, interval) != nil {
			return
		}
	}
}

// podsInterval is how often the pods directory is read: a few times within the grace time.
func podsInterval(grace time.Duration) time.Duration {
	return max(min(grace/4, longestPodsInterval), 100*time.Millisecond)
}

// directories looks at the working directory and at the kubelet's pods directory.
func (w *watch) directories() {
	w.workdir()
	w.pods()
}

// workdir ends the daemon when its working directory is covered or moved: people see another
// directory than the one with the volumes.
func (w *watch) workdir() {
	switch err := w.Scratch.CheckPath(); {
	case errors.Is(err, scratch.ErrCovered):
		w.Fail(err)
	case err != nil:
		w.Log.Error(err, "cannot tell whether the working directory is where it was")
	}
}

// pods tells the volumes which pods the kubelet has. One read of the directory serves them all.
func (w *watch) pods() {
	names, err := kubelet.PodNames(w.PodsDir)
	if err != nil {
		// Nothing is concluded from a directory that cannot be read.
		w.setPodsError(fmt.Errorf("read the kubelet's pods directory: %w", err))
		if w.unreadable != err.Error() {
			w.unreadable = err.Error()
			w.Log.Error(err, "cannot read the kubelet's pods directory; volumes without a pod are not noticed")
		}
		return
	}
	w.unreadable = ""
	w.Metrics.PodsSeen(len(names))
	mounted := w.mounted()
	w.Root.Send(w.Supervisor(), &messages.PodsSeen{Names: names, Mounted: mounted, At: time.Now()})
}

// mounted reads the mount table twice within the grace time, and returns what it shows; nil at other times. Mounts
// go without an unmount with a reboot, or when a person takes them away.
func (w *watch) mounted() func(volume.Place) []string {
	now := time.Now()
	first := w.nextMounts.IsZero()
	if now.Before(w.nextMounts) {
		return nil
	}
	w.nextMounts = now.Add((w.OrphanGrace - podsInterval(w.OrphanGrace)) / 2) // the rounds take a moment longer
	if first {
		return nil // the start has just read it
	}
	found, err := w.mounts.look(w.ctx, true)
	if err != nil {
		if w.ctx.Err() == nil {
			w.Log.Error(err, "cannot read the mount table; volumes that are mounted nowhere are not noticed")
		}
		return nil
	}
	return found.volume
}

// orphans retains the data directories of unknown volumes, so that they expire like the others.
func (w *watch) orphans() {
	w.foreign = foreign{}
	var batch []volume.Place
	look := func() error {
		err := w.adoptUnknown(batch)
		batch = batch[:0]
		return err
	}
	err := w.Scratch.Walk(w.ctx, func(p volume.Place) error {
		batch = append(batch, p)
		if len(batch) < orphanBatch {
			return nil
		}
		if err := look(); err != nil {
			return err
		}
		return w.giveWay()
	})
	if err == nil {
		err = look()
	}
	w.searched = w.searched || err == nil
	w.logForeign()
	if w.left && w.searched && retry.Pause(w.ctx, w.OrphanGrace) == nil {
		w.left = false
		w.orphans()
		return
	}
	if err != nil && w.ctx.Err() == nil {
		w.Log.Error(err, "search for data directories without a record broken off; it is repeated",
			logkeys.Interval, duration.Format(orphanInterval))
	}
}

// giveWay waits between two batches. The first search waits for calls only, of which many come
// after a start.
func (w *watch) giveWay() error {
	if !w.searched {
		return w.calls.Yield(w.ctx, pace.LongestYield)
	}
	return retry.Pause(w.ctx, orphanRest)
}

func (w *watch) adoptUnknown(found []volume.Place) error {
	unknown, err := actors.Ask(w.ctx, w.Root, w.Supervisor(), &messages.FindUnknown{Places: slices.Clone(found)})
	if err != nil {
		return err
	}
	if len(unknown) == 0 {
		return nil
	}
	mounts, err := w.mounts.look(w.ctx, true)
	if err != nil {
		return err
	}
	orders := make([]*messages.AdoptVolume, 0, len(unknown))
	for _, dir := range unknown {
		if !w.isVolume(dir, mounts) || w.comesBack(dir) {
			continue
		}
		order := &messages.AdoptVolume{Routing: messages.Routing{ID: dir.ID}, Pod: dir.Pod}
		order.Prepare()
		w.Root.Send(w.Supervisor(), order)
		orders = append(orders, order)
	}
	for _, order := range orders {
		switch _, err := order.Wait(w.ctx); {
		case errors.Is(err, volume.ErrBusy): // a pod gets it meanwhile, or the next search finds it again
		case err != nil:
			w.Log.Error(err, adoptionFailed, logkeys.About(volume.Record{ID: order.ID, Pod: order.Pod})...)
		}
	}
	return nil
}

// adoptionFailed is the line about a directory that stays without a record.
const adoptionFailed = "cannot adopt a data directory, it is left alone"

// comesBack reports whether a directory may be one whose record a power cut took, and which the kubelet is about to publish
// again: so it is while the pod is there, until the grace time is over.
func (w *watch) comesBack(dir volume.Place) bool {
	if !w.Rebooted || w.searched {
		return false
	}
	_, err := os.Lstat(filepath.Join(w.PodsDir, string(dir.Pod)))
	there := !errors.Is(err, fs.ErrNotExist)
	w.left = w.left || there
	return there
}

// foreign are directories that lie where data directories do and are not Katbox's. They are left alone.
type foreign struct {
	count   int
	example volume.Place
}

// isVolume reports whether an unknown directory is a volume's, and counts it where it is not. Everything
// that is adopted is deleted after a lifespan, so its names have to be a kubelet's: other names are those
// of people's own files. So is everything in a directory that is mounted for a pod as a whole.
func (w *watch) isVolume(dir volume.Place, mounts *mounted) bool {
	if dir.Pod.FromKubelet() && dir.ID.FromKubelet() && mounts.pod(dir.Pod, w.PodsDir) == "" && mounts.all() == "" {
		return true
	}
	if w.foreign.count == 0 {
		w.foreign.example = dir
	}
	w.foreign.count++
	return false
}

// logForeign logs in one line what a search has left alone, unless the last one left the same number.
func (w *watch) logForeign() {
	if w.foreign.count == w.loggedForeign.count {
		return
	}
	w.loggedForeign = w.foreign
	if w.foreign.count == 0 {
		return
	}
	w.Log.Info("left alone directories in the working directory that are not Katbox's: no record knows them, "+
		"and they are not named as a kubelet names pods and volumes, or are mounted for a pod together with what they are in",
		"directories", w.foreign.count, "example", w.Scratch.Path(w.foreign.example))
}
