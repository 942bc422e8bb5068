package rules

import (
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// FindsDisk reports whether a node has found a disk on which the controller has not decided. What is attached over NFS has
// none, whatever a node says.
func FindsDisk(a *v1alpha1.PoolAttachment) bool {
	s := a.Status
	return s.LUN != nil && s.WWID != "" && s.WWID != s.AcceptedWWID && s.WWID != s.RefusedWWID && a.DeletionTimestamp == nil
}

// LUN is where an iSCSI target has the volume of an attachment; -1 where that is not known.
func LUN(a *v1alpha1.PoolAttachment) int {
	if a.Status.LUN == nil {
		return -1
	}
	return int(*a.Status.LUN)
}
