package tasks

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// claim is a PersistentVolumeClaim as the API server has it. Of claims the metadata alone are read.
type claim struct {
	pools.ClaimOf
	// object is what Events are about.
	object *metav1.PartialObjectMetadata
	// invalid is what is wrong with the annotation of its lifespan.
	invalid error
	// restore is what it wants to have back.
	restore string
}

// readClaim reads the claim of a name; nil where there is none.
func (t *task) readClaim(ctx context.Context, of pools.Claim) (*claim, error) {
	c := &claim{object: rules.ClaimObject("", "", "")}
	err := t.Resources.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, c.object)
	if client.IgnoreNotFound(err) != nil {
		return nil, env.KubernetesError(err, "read the PersistentVolumeClaim "+of.Namespace+"/"+of.Name)
	}
	if err != nil {
		return nil, nil
	}
	c.Claim, c.UID, c.restore = of, string(c.object.UID), c.object.Annotations[v1alpha1.RestoreAnnotation]
	c.Lifespan, c.invalid = rules.LifespanOf(c.object)
	return c, nil
}

// asking reads the claim that a volume is asked for, and its namespace; nil where it is not known, or gone.
func (t *task) asking(ctx context.Context, n pools.NewVolume) (*claim, error) {
	if n.Claim == (pools.Claim{}) {
		return nil, nil // the provisioner names none
	}
	// The namespace first: as long as its claim is there, so was the namespace before.
	namespace, err := t.namespace(ctx, n.Claim.Namespace)
	if err != nil {
		return nil, err
	}
	c, err := t.readClaim(ctx, n.Claim)
	if c == nil || err != nil {
		return nil, err
	}
	if uid := rules.UIDPattern.FindString(n.Name); uid != "" && rules.UIDPattern.MatchString(c.UID) && uid != c.UID {
		return nil, nil // a later claim of this name: that of the request is gone
	}
	c.NamespaceUID = string(namespace.UID)
	if c.invalid != nil {
		t.warn(c.object, "InvalidLifespan", c.invalid)
	}
	return c, nil
}

// namespace reads a namespace's metadata. Its UID is empty where there is no such namespace.
func (t *task) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := client.IgnoreNotFound(t.Resources.Get(ctx, client.ObjectKey{Name: name}, o)); err != nil {
		return nil, env.KubernetesError(err, "read the namespace "+name)
	}
	return o, nil
}

// isFor writes the owner into a resource.
func isFor(v *v1alpha1.PoolVolume, c *claim) {
	if c == nil {
		return
	}
	v.Spec.ClaimRef = &v1alpha1.ClaimRef{
		Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID), NamespaceUID: types.UID(c.NamespaceUID),
	}
	v.Spec.Lifespan = rules.LifespanToSpec(c.Lifespan)
}

// tellBoth makes an event of a volume and of its claim.
func (t *task) tellBoth(v *v1alpha1.PoolVolume, reason, text string) {
	t.tell(v, reason, text)
	if c := rules.ClaimOf(v); c != nil {
		t.tell(c, reason, text)
	}
}
