package rules

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// ClaimObject is the metadata of a claim; what it names need not exist.
func ClaimObject(namespace, name string, uid types.UID) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(poolmessages.PersistentVolumeClaimKind))
	return o
}

// UIDPattern is the claim's UID at the end of the name by which the provisioner asks for its volume.
var UIDPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ClaimOf returns the claim that owns a volume, of which an Event can tell although it is gone. nil where it is not known.
func ClaimOf(v *v1alpha1.PoolVolume) *metav1.PartialObjectMetadata {
	c := v.Spec.ClaimRef
	if c == nil || c.UID == "" {
		return nil
	}
	return ClaimObject(c.Namespace, c.Name, c.UID)
}

// ClaimUID returns the UID of a volume's claim, in the memory of the volume's name where that ends with it.
func ClaimUID(o *v1alpha1.PoolVolume) string {
	if o.Spec.ClaimRef == nil {
		return ""
	}
	uid := string(o.Spec.ClaimRef.UID)
	if uid != "" && strings.HasSuffix(o.Name, uid) {
		return o.Name[len(o.Name)-len(uid):]
	}
	return uid
}
