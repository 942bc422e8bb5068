package resource

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/katbox/katbox/internal/terminal"
)

// unknown is what kubectl shows for what is not known.
const unknown = "<unknown>"

// columns are those of kubectl get; the ones with a priority are of -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the volume, which begins with that of its pod."},
	{Name: "Pod", Type: "string", Description: "Name of the pod whose volume it was."},
	{Name: "Owner", Type: "string", Description: "Controller of the pod. One with a question mark is guessed from the pod's name."},
	{Name: "Size", Type: "string", Description: "What the volume takes on the disk."},
	{Name: "Age", Type: "string", Description: "Time since the pod ended and the volume was retained."},
	{Name: "Expires", Type: "string", Description: "Time until the volume is deleted, if the disk pressure stays as it is."},
	{Name: "Node", Type: "string", Priority: 1, Description: "Node that has the volume."},
	{Name: "Pod-UID", Type: "string", Priority: 1, Description: "UID of the pod."},
}

// Table returns volumes as a table, as kubectl shows it. include says how much of each volume goes
// with its row.
func Table(meta metav1.ListMeta, volumes []RetainedVolume, include metav1.IncludeObjectPolicy, now time.Time) *metav1.Table {
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"}, ListMeta: meta,
		ColumnDefinitions: columns, Rows: make([]metav1.TableRow, 0, len(volumes)),
	}
	for i := range volumes {
		v := &volumes[i]
		row := metav1.TableRow{Cells: []any{
			v.Name, v.Spec.PodName, ownerCell(v.Spec.Owner), sizeCell(v.Status.Bytes), ageCell(v.Status.RetainedAt, now),
			expiresCell(v.Status.ExpiresAt, now), v.Spec.NodeName, v.Spec.PodUID,
		}}
		switch include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object.Object = v
		default:
			row.Object.Object = Metadata(v)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
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
	switch {
	case o == nil:
		return "<none>"
	case o.Guessed:
		return o.Kind + "/" + o.Name + "?"
	}
	return o.Kind + "/" + o.Name
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
	return duration.HumanDuration(max(0, now.Sub(t.Time)))
}

func expiresCell(t *metav1.Time, now time.Time) string {
	switch {
	case t.IsZero():
		return unknown
	case !t.After(now):
		return "now"
	}
	return duration.HumanDuration(t.Sub(now))
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
	s.Bytes, s.Inodes = clone(s.Bytes), clone(s.Inodes)
	return &other
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
