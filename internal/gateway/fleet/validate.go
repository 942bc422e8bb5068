package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostSize is more than any volume takes, in bytes or inodes.
const mostSize = 1 << 60

// lastYear is the last one that RFC 3339 can write.
const lastYear = 9999

// validateVolume returns nil if an entry can be true: if a correct node answers with it to the
// query. It takes over the strings that all entries of the node share, so that 5,000 entries take
// less memory.
func validateVolume(v *api.Volume, node string, q api.Query) error {
	if v.Node != "" && v.Node != node {
		return fmt.Errorf("it is of node %q", v.Node)
	}
	v.Node = node
	if v.Phase != volume.Retained.String() {
		return fmt.Errorf("its phase is %q", v.Phase)
	}
	v.Phase = volume.Retained.String()
	if v.RetainedAt == nil {
		return fmt.Errorf("it does not say when it was retained")
	}
	if _, err := volume.ParseID("id", v.ID); err != nil {
		return err
	}
	if v.PodUID != "" || v.Pod != "" { // else it is a claim's
		if _, err := volume.ParsePodUID("podUID", v.PodUID); err != nil {
			return err
		}
	}
	if v.Claim != "" && v.Pod != "" {
		return fmt.Errorf("it is of claim %.300q and of pod %q", v.Claim, v.Pod)
	}
	for _, name := range [...]string{v.Namespace, v.Pod, v.Claim, v.Volume, v.ServiceAccount} {
		if volume.ObjectName(name) != name {
			return fmt.Errorf("%.300q is no name of Kubernetes", name)
		}
	}
	for _, size := range [...]*int64{v.Bytes, v.Inodes} {
		if size != nil && (*size < 0 || *size > mostSize) {
			return fmt.Errorf("its size is %d", *size)
		}
	}
	switch {
	case q.Namespace != "" && v.Namespace != q.Namespace, q.NoNamespace && v.Namespace != "":
		return fmt.Errorf("it is of namespace %q", v.Namespace)
	case q.Pod != "" && ofName(v) != q.Pod, !strings.HasPrefix(ofName(v), q.PodPrefix), q.PodUID != "" && v.PodUID != q.PodUID:
		return fmt.Errorf("it is of pod %q with UID %q, or of claim %q", v.Pod, v.PodUID, v.Claim)
	case v.RetainedAt.Before(q.Since):
		return fmt.Errorf("it was retained at %v", v.RetainedAt)
	}
	if q.Namespace != "" {
		v.Namespace = q.Namespace
	}
	for _, at := range [...]*time.Time{v.PublishedAt, v.RetainedAt, v.ExpiresAt, v.ArchivedUntil} {
		if at == nil {
			continue
		}
		if err := validateTime(*at); err != nil {
			return err
		}
	}
	if err := validateTerms(v); err != nil {
		return err
	}
	return validateOwner(v)
}

// validateArchived is validateVolume for a volume in the archive.
func validateArchived(v *api.Volume, q api.Query) error {
	if v.Phase != api.PhaseArchived || v.Archived == "" {
		return fmt.Errorf("its phase is %q", v.Phase)
	}
	if v.Owner == nil || v.Owner.Verdict != volume.Confirmed.String() || v.Node == "" || v.Namespace == "" {
		return errors.New("it does not say whose it was, or where")
	}
	v.Phase = volume.Retained.String()
	err := validateVolume(v, v.Node, q)
	v.Phase = api.PhaseArchived
	return err
}

// ofName is the name of the pod that a volume is of, or of its claim. A node selects both as pods.
func ofName(v *api.Volume) string { return cmp.Or(v.Pod, v.Claim) }

// validateTime returns nil for a time that clients accept: they refuse a whole list with a year of five
// digits.
func validateTime(at time.Time) error {
	if year := at.UTC().Year(); year < 1 || year > lastYear {
		return fmt.Errorf("it has a time in the year %d", year)
	}
	return nil
}

// validateOwner is validateVolume for the owner.
func validateOwner(v *api.Volume) error {
	o := v.Owner
	if o == nil {
		return nil
	}
	owner, err := o.Parse()
	if err != nil {
		return err
	}
	return owner.Check()
}

// judge makes an entry of a volume that validateVolume has passed. What the gateway knows of the pod beats what the node
// says. It returns false if the reader may not see the volume. tenancy is the namespace of the query;
// nil if that does not select by it.
func (f *Fleet) judge(v api.Volume, by Reader, tenancy *volume.Tenancy) (*Entry, bool) {
	if v.PodUID != "" {
		if known, ok := f.cfg.Owners.Verdict(v.PodUID, v.Node); ok {
			v.Owner = &known
		}
	}
	e := &Entry{Volume: v, Foreign: !f.belongs(&v, tenancy)}
	return e, by.Everywhere || !e.Foreign
}

// judgeArchived is judge for a volume that validateArchived has passed. Its key says whose it is: what nodes say, and what is
// known of a pod of that UID, is of no account.
func (f *Fleet) judgeArchived(v api.Volume, by Reader, tenancy *volume.Tenancy) (*Entry, bool) {
	e := &Entry{Volume: v, Foreign: !f.belongs(&v, tenancy)}
	return e, by.Everywhere || !e.Foreign
}

// belongs reports whether a volume belongs to its namespace as that is now.
func (f *Fleet) belongs(v *api.Volume, tenancy *volume.Tenancy) bool {
	if v.Namespace == "" {
		return false
	}
	if tenancy == nil {
		now, ok := f.cfg.Namespaces.Tenancy(v.Namespace)
		if !ok {
			return false
		}
		tenancy = &now
	}
	var owner volume.Owner
	if v.Owner != nil {
		owner.NamespaceUID = v.Owner.NamespaceUID
		owner.Verdict = volume.Denied
		if v.Owner.Verdict == volume.Confirmed.String() {
			owner.Verdict = volume.Confirmed
		}
	}
	var published time.Time
	if v.PublishedAt != nil {
		published = *v.PublishedAt
	}
	return tenancy.Owns(owner, published)
}
