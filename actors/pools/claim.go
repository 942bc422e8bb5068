package pools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// noLifespan is that of a claim that does not say.
const noLifespan time.Duration = -1

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

// claimObject is the metadata of a claim; what it names need not exist.
func claimObject(namespace, name string, uid types.UID) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(poolmessages.PersistentVolumeClaimKind))
	return o
}

// readClaim reads the claim of a name; nil where there is none.
func (t *task) readClaim(ctx context.Context, of pools.Claim) (*claim, error) {
	c := &claim{object: claimObject("", "", "")}
	err := t.Resources.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, c.object)
	if client.IgnoreNotFound(err) != nil {
		return nil, kubernetesError(err, "read the PersistentVolumeClaim "+of.Namespace+"/"+of.Name)
	}
	if err != nil {
		return nil, nil
	}
	c.Claim, c.UID, c.restore = of, string(c.object.UID), c.object.Annotations[v1alpha1.RestoreAnnotation]
	c.Lifespan, c.invalid = lifespanOf(c.object)
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
	if uid := uidIn.FindString(n.Name); uid != "" && uidIn.MatchString(c.UID) && uid != c.UID {
		return nil, nil // a later claim of this name: that of the request is gone
	}
	c.NamespaceUID = string(namespace.UID)
	if c.invalid != nil {
		t.warn(c.object, "InvalidLifespan", c.invalid)
	}
	return c, nil
}

// uidIn is the claim's UID at the end of the name by which the provisioner asks for its volume.
var uidIn = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// namespace reads a namespace's metadata. Its UID is empty where there is no such namespace.
func (t *task) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := client.IgnoreNotFound(t.Resources.Get(ctx, client.ObjectKey{Name: name}, o)); err != nil {
		return nil, kubernetesError(err, "read the namespace "+name)
	}
	return o, nil
}

// lifespanOf reads the annotation of a claim, or of a PersistentVolume. One that is invalid counts as none.
func lifespanOf(o metav1.Object) (time.Duration, error) {
	text, ok := o.GetAnnotations()[v1alpha1.LifespanAnnotation]
	if !ok {
		return noLifespan, nil
	}
	lifespan, err := duration.Parse(text)
	if err == nil && lifespan < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return noLifespan, fmt.Errorf("the annotation %s is %.100q: %w; that of the PoolClass holds", v1alpha1.LifespanAnnotation, text, err)
	}
	return lifespan, nil
}

// orNone is a lifespan for a resource's spec.
func orNone(lifespan time.Duration) *v1alpha1.Duration {
	if lifespan < 0 {
		return nil
	}
	return &v1alpha1.Duration{Duration: lifespan}
}

// saidIn is a lifespan of a resource's spec.
func saidIn(lifespan *v1alpha1.Duration) time.Duration {
	if lifespan == nil {
		return noLifespan
	}
	return lifespan.Duration
}

// wholeSeconds is a lifespan as the times in a resource tell it, which have whole seconds: rounded up, so that nothing goes
// early.
func wholeSeconds(lifespan time.Duration) time.Duration {
	if whole := lifespan.Truncate(time.Second); lifespan > whole && whole < math.MaxInt64-time.Second {
		return whole + time.Second
	}
	return lifespan
}

// isFor writes into a resource whose it is.
func isFor(v *v1alpha1.PoolVolume, c *claim) {
	if c == nil {
		return
	}
	v.Spec.ClaimRef = &v1alpha1.ClaimRef{
		Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID), NamespaceUID: types.UID(c.NamespaceUID),
	}
	v.Spec.Lifespan = orNone(c.Lifespan)
}

// owner of a volume: its claim, of which an Event can tell although it is gone. nil where it is not known.
func claimOf(v *v1alpha1.PoolVolume) *metav1.PartialObjectMetadata {
	c := v.Spec.ClaimRef
	if c == nil || c.UID == "" {
		return nil
	}
	return claimObject(c.Namespace, c.Name, c.UID)
}

// tellBoth makes an event of a volume and of its claim.
func (t *task) tellBoth(v *v1alpha1.PoolVolume, reason, text string) {
	t.tell(v, reason, text)
	if c := claimOf(v); c != nil {
		t.tell(c, reason, text)
	}
}
