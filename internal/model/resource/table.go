package resource

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

// unknown is what kubectl shows for what is not known.
const unknown = "<unknown>"

// column is a column of kubectl get, and what it shows of a volume.
type column struct {
	metav1.TableColumnDefinition
	cell func(v *RetainedVolume, now time.Time) string
}

// The columns; the ones with a priority are of -o wide.
var (
	nameColumn = column{
		metav1.TableColumnDefinition{
			Name: "Name", Type: "string", Format: "name", Description: "Name of the volume, which begins with that of its pod.",
		},
		func(v *RetainedVolume, _ time.Time) string { return v.Name },
	}
	podColumn = column{
		metav1.TableColumnDefinition{Name: "Pod", Type: "string", Description: "Name of the pod whose volume it was."},
		func(v *RetainedVolume, _ time.Time) string { return v.Spec.PodName },
	}
	ownerColumn = column{
		metav1.TableColumnDefinition{
			Name: "Owner", Type: "string", Description: "Controller of the pod. One with a question mark is guessed from the pod's name.",
		},
		func(v *RetainedVolume, _ time.Time) string { return ownerCell(v.Spec.Owner) },
	}
	outcomeColumn = column{
		metav1.TableColumnDefinition{
			Name: "Outcome", Type: "string", Description: "How the pod ended: Succeeded, Failed, or Stopped if it was stopped before.",
		},
		func(v *RetainedVolume, _ time.Time) string { return cmp.Or(v.Status.Outcome, unknown) },
	}
	sizeColumn = column{
		metav1.TableColumnDefinition{Name: "Size", Type: "string", Description: "What the volume takes on the disk."},
		func(v *RetainedVolume, _ time.Time) string { return sizeCell(v.Status.Bytes) },
	}
	nodeColumn = column{
		metav1.TableColumnDefinition{
			Name: "Node", Type: "string", Priority: 1, Description: "Node that has the volume, or the pool on a remote array.",
		},
		func(v *RetainedVolume, _ time.Time) string { return NodeCell(v) },
	}
	podUIDColumn = column{
		metav1.TableColumnDefinition{Name: "Pod-UID", Type: "string", Priority: 1, Description: "UID of the pod."},
		func(v *RetainedVolume, _ time.Time) string { return v.Spec.PodUID },
	}
)

// columns are those of retained volumes.
var columns = []column{
	nameColumn, podColumn, ownerColumn, outcomeColumn, sizeColumn,
	{
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the pod ended and the volume was retained."},
		func(v *RetainedVolume, now time.Time) string { return ageCell(v.Status.RetainedAt, now) },
	},
	{
		metav1.TableColumnDefinition{
			Name: "Expires", Type: "string", Description: "Time until the volume is deleted, if the disk pressure stays as it is.",
		},
		func(v *RetainedVolume, now time.Time) string { return expiresCell(v.Status.ExpiresAt, now) },
	},
	nodeColumn, podUIDColumn,
	{
		metav1.TableColumnDefinition{
			Name: "Hold", Type: "string", Priority: 1, Description: "Whether a person has pinned or released the volume, and who.",
		},
		func(v *RetainedVolume, _ time.Time) string { return holdCell(v.Status.Hold) },
	},
	{
		metav1.TableColumnDefinition{
			Name: "Phase", Type: "string", Priority: 1,
			Description: "Retained on its node, or Archived: no node has it any more, and the archive a copy.",
		},
		func(v *RetainedVolume, _ time.Time) string { return v.Status.Phase },
	},
}

// goneColumns are those of volumes that were deleted.
var goneColumns = []column{
	nameColumn, podColumn, ownerColumn, outcomeColumn, sizeColumn,
	{
		metav1.TableColumnDefinition{Name: "Gone", Type: "string", Description: "Time since the volume was deleted."},
		func(v *RetainedVolume, now time.Time) string { return ageCell(&v.Status.Gone.At, now) },
	},
	{
		metav1.TableColumnDefinition{Name: "Kept", Type: "string", Description: "How long the volume was kept, of how long it was to be kept."},
		func(v *RetainedVolume, _ time.Time) string {
			return duration.KeptOf(v.Status.Gone.Kept, v.Status.Gone.Promised)
		},
	},
	{
		metav1.TableColumnDefinition{
			Name: "Why", Type: "string", Description: "Why it was deleted: its time was over, room was needed, or a person wanted it.",
		},
		func(v *RetainedVolume, _ time.Time) string { return whyCell(v.Status.Gone) },
	},
	nodeColumn, podUIDColumn,
}

// Table returns volumes as a table, as kubectl shows it. include says how much of each volume goes
// with its row. gone says that they are volumes that were deleted.
func Table(meta metav1.ListMeta, volumes []RetainedVolume, gone bool, include metav1.IncludeObjectPolicy, now time.Time) *metav1.Table {
	shown := columns
	if gone {
		shown = goneColumns
	}
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"}, ListMeta: meta,
		Rows: make([]metav1.TableRow, 0, len(volumes)),
	}
	for _, c := range shown {
		table.ColumnDefinitions = append(table.ColumnDefinitions, c.TableColumnDefinition)
	}
	for i := range volumes {
		v := &volumes[i]
		row := metav1.TableRow{Cells: make([]any, len(shown))}
		for j, c := range shown {
			row.Cells[j] = c.cell(v, now)
		}
		switch include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object = encoded(v)
		default:
			row.Object.Object = Metadata(v)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// encoded returns a volume as its row holds it: as an object its characters <, > and & would be escaped.
func encoded(v *RetainedVolume) runtime.RawExtension {
	text, err := api.Encode(v)
	if err != nil {
		return runtime.RawExtension{Object: v} // who encodes the table gets the error
	}
	return runtime.RawExtension{Raw: text}
}

// Metadata returns the metadata of a volume.
func Metadata(v *RetainedVolume) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"},
		ObjectMeta: v.ObjectMeta,
	}
}

// MetadataList returns the metadata of volumes.
func MetadataList(list *RetainedVolumeList) *metav1.PartialObjectMetadataList {
	all := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadataList"},
		ListMeta: list.ListMeta, Items: make([]metav1.PartialObjectMetadata, 0, len(list.Items)),
	}
	for i := range list.Items {
		all.Items = append(all.Items, *Metadata(&list.Items[i]))
	}
	return all
}

func ownerCell(o *Owner) string {
	if o == nil {
		return "<none>"
	}
	return o.String()
}

func sizeCell(bytes *int64) string {
	if bytes == nil {
		return unknown
	}
	return terminal.Size(*bytes)
}

func ageCell(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return terminal.Span(now.Sub(t.Time))
}

// holdCell says what a person has decided, and who.
func holdCell(h *Hold) string {
	if h == nil {
		return "<none>"
	}
	if h.By == "" {
		return h.Kind
	}
	return h.Kind + " by " + h.By
}

// whyCell says why a volume was deleted, and who wanted it.
func whyCell(g *Gone) string {
	text := volume.ReasonInWords(g.Reason)
	if g.By != "" {
		text += " by " + g.By
	}
	return text
}

func expiresCell(t *metav1.Time, now time.Time) string {
	switch {
	case t.IsZero():
		return unknown
	case !t.After(now):
		return "now"
	}
	return terminal.Span(t.Sub(now))
}

// DeepCopyObject makes a volume one of the objects that a table may hold.
func (v *RetainedVolume) DeepCopyObject() runtime.Object { return v.DeepCopy() }

// DeepCopy returns a copy that shares nothing with the volume.
func (v *RetainedVolume) DeepCopy() *RetainedVolume {
	other, meta := *v, v.ObjectMeta
	meta.DeepCopyInto(&other.ObjectMeta)
	other.Spec.Owner = clone(v.Spec.Owner)
	s := &other.Status
	s.PublishedAt, s.RetainedAt, s.ExpiresAt = s.PublishedAt.DeepCopy(), s.RetainedAt.DeepCopy(), s.ExpiresAt.DeepCopy()
	s.ArchivedUntil = s.ArchivedUntil.DeepCopy()
	s.Bytes, s.Inodes = clone(s.Bytes), clone(s.Inodes)
	s.Hold, s.Terms, s.Gone = clone(s.Hold), clone(s.Terms), clone(s.Gone)
	other.Spec.KeepUntil = v.Spec.KeepUntil.DeepCopy()
	return &other
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// NodeCell is where a volume is: its node, or pool/NAME and its PoolClass for one on a remote array.
func NodeCell(v *RetainedVolume) string {
	if v.Spec.PoolName == "" {
		return v.Spec.NodeName
	}
	return "pool/" + v.Spec.PoolName + " (" + v.Spec.ClassName + ")"
}
