package actors

import (
	"github.com/katbox/katbox/internal/volume"
)

// foreign are directories that lie where data directories do, and are not Katbox's:
// other people's data, which is left alone.
type foreign struct {
	count   int
	example volume.Place
}

// isVolume tells whether an unknown directory is a volume's, and counts it where it
// is not. Everything that is adopted is deleted after a lifespan, so its names have
// to be a kubelet's: others are those of people's own files. So is what is in a
// directory that is mounted for a pod as a whole.
func (w *watch) isVolume(dir volume.Place, mounts *mounted) bool {
	if dir.Pod.FromKubelet() && dir.ID.FromKubelet() && mounts.pod(dir.Pod, w.podsDir) == "" && mounts.all() == "" {
		return true
	}
	if w.foreign.count == 0 {
		w.foreign.example = dir
	}
	w.foreign.count++
	return false
}

// tellForeign logs what a search has left alone, unless the one before left the same
// number: one line, however many there are.
func (w *watch) tellForeign() {
	if w.foreign.count == w.toldForeign.count {
		return
	}
	w.toldForeign = w.foreign
	if w.foreign.count == 0 {
		return
	}
	w.log.Info("left alone directories in the working directory that are not Katbox's: no record knows them, and they are not named as a kubelet names pods and volumes, or are mounted for a pod together with what they are in",
		"directories", w.foreign.count, "example", w.scratch.Path(w.foreign.example))
}
