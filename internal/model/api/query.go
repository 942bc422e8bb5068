package api

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// StandardVolumes is how many volumes a page holds if the request does not say, and MostVolumes how
	// many it can hold.
	StandardVolumes = 500
	// MostVolumes: see StandardVolumes.
	MostVolumes = 5000
	// StandardNames is how many entries a page of a [FileList] holds if the request does not say, and
	// MostNames how many it can hold.
	StandardNames = 1000
	// MostNames: see StandardNames.
	MostNames = 10_000
)

// Query selects retained volumes. A zero field selects all.
type Query struct {
	Namespace string
	// Tenancy leaves out volumes that do not belong to the namespace as it is now.
	Tenancy *volume.Tenancy
	// NoNamespace selects volumes whose namespace is not known.
	NoNamespace bool
	Pod         string // the pod's name
	PodPrefix   string // the beginning of the pod's name
	PodUID      string
	Job         string // the Job that owns the pod
	OwnerKind   string
	// Since leaves out volumes that were retained before.
	Since time.Time
	// Continue is that of the page before.
	Continue string
	// Limit is how many volumes the page may hold, at most 5,000; 0 is 500.
	Limit int
}

func (q Query) values() url.Values {
	v := url.Values{}
	set(v, "namespace", q.Namespace)
	set(v, "pod", q.Pod)
	set(v, "podPrefix", q.PodPrefix)
	set(v, "podUID", q.PodUID)
	set(v, "job", q.Job)
	set(v, "ownerKind", q.OwnerKind)
	if q.NoNamespace {
		v.Set("noNamespace", "true")
	}
	if q.Tenancy != nil {
		v.Set("namespaceUID", q.Tenancy.UID)
		v.Set("publishedSince", q.Tenancy.Since.Format(time.RFC3339Nano))
	}
	set(v, "before", q.Continue)
	setNumber(v, "limit", int64(q.Limit))
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	return v
}

// GoneQuery selects volumes that are gone. A zero field selects all.
type GoneQuery struct {
	// Query selects as it does retained volumes; its Since and Continue are not used.
	Query
	// ID selects one volume.
	ID string
	// Continue is that of the page before.
	Continue uint64
}

func (q GoneQuery) values() url.Values {
	q.Since, q.Query.Continue = time.Time{}, ""
	v := q.Query.values()
	set(v, "id", q.ID)
	if q.Continue != 0 {
		v.Set("before", strconv.FormatUint(q.Continue, 10))
	}
	return v
}

// FormatKey writes the place of a volume in a list, as the Continue of a page: seconds, nanoseconds,
// ID. It is empty for the zero Key.
func FormatKey(k volume.Key) string {
	if k.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%09d.%s", k.Unpublished.Unix(), k.Unpublished.Nanosecond(), k.ID)
}

// ParseKey reads what FormatKey wrote.
func ParseKey(text string) (volume.Key, bool) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 {
		return volume.Key{}, false
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	nanoseconds, err2 := strconv.ParseUint(parts[1], 10, 30)
	id, err3 := volume.ParseID("volume ID", parts[2])
	if err != nil || err2 != nil || err3 != nil || nanoseconds >= uint64(time.Second) {
		return volume.Key{}, false
	}
	return volume.Key{Unpublished: time.Unix(seconds, int64(nanoseconds)), ID: id}, true
}

// FilesQuery selects entries of a volume.
type FilesQuery struct {
	// Path is the ref of a directory, or with Stat of any entry; empty is the top of the volume.
	Path string
	// Continue is that of the page before.
	Continue string
	// Limit is how many entries the page may hold, at most 10,000; 0 is 1,000.
	Limit int
	// Depth is how many levels of directories are listed, at most 16; 0 is 1.
	Depth int
	// Stat describes the entry itself instead of what is in it.
	Stat bool
}

// Values returns the parameters of the request.
func (q FilesQuery) Values() url.Values {
	v := url.Values{}
	set(v, "path", q.Path)
	set(v, "continue", q.Continue)
	setNumber(v, "limit", int64(q.Limit))
	setNumber(v, "depth", int64(q.Depth))
	if q.Stat {
		v.Set("stat", "true")
	}
	return v
}

// set sets a parameter that is not empty.
func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func setNumber(v url.Values, name string, value int64) {
	if value != 0 {
		v.Set(name, strconv.FormatInt(value, 10))
	}
}
