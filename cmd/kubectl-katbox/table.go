package main

import (
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
)

// volumeTable lists volumes.
type volumeTable struct {
	*terminal.Table
	s    *session
	wide bool
}

// newVolumeTable returns a table. With all namespaces it names that of each volume.
func newVolumeTable(w io.Writer, s *session, wide bool, first ...string) volumeTable {
	var header []string
	header = append(header, first...)
	if s.namespace == "" {
		header = append(header, "NAMESPACE")
	}
	header = append(header, "NAME", "VOLUME", "OWNER", "OUTCOME", "SIZE", "RETAINED", "EXPIRES")
	if wide {
		header = append(header, "POD", "NODE", "POD-UID")
	}
	return volumeTable{Table: terminal.NewTable(w, header...), s: s, wide: wide}
}

// row adds a volume; first are the cells in front of it.
func (t volumeTable) row(v *resource.RetainedVolume, first ...string) {
	now := t.s.Now()
	var cells []string
	cells = append(cells, first...)
	if t.s.namespace == "" {
		cells = append(cells, v.Namespace)
	}
	cells = append(cells, v.Name, verbs.Known(v.Spec.VolumeName), owner(v.Spec.Owner), verbs.Known(v.Status.Outcome), size(v),
		terminal.Ago(now, at(v.Status.RetainedAt)), expires(v, now))
	if t.wide {
		cells = append(cells, verbs.Known(v.Spec.PodName), resource.NodeCell(v), verbs.Known(v.Spec.PodUID))
	}
	t.Row(cells...)
}

// owner returns the controller of a pod, or the claim of a volume, if it is known.
func owner(o *resource.Owner) string {
	if o == nil {
		return terminal.Unknown
	}
	return o.String()
}

func size(v *resource.RetainedVolume) string {
	if v.Status.Bytes == nil {
		return terminal.Unknown
	}
	return terminal.Size(*v.Status.Bytes)
}

// expires returns when a volume goes. Disk pressure may make that earlier still.
func expires(v *resource.RetainedVolume, now time.Time) string {
	text := terminal.In(now, at(v.Status.ExpiresAt))
	if v.Status.Phase == api.PhaseArchived {
		text += " (archived)"
	}
	if v.Status.MayGoEarlier {
		text += " (disk pressure)"
	}
	if h := v.Status.Hold; h != nil {
		text += verbs.HoldNote(h.Kind)
	}
	return text
}

// at returns the time that t points to, or the zero time.
func at(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
