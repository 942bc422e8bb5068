package pools

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// kubeAPI is an API server in memory: resource versions that only grow, optimistic locks, UIDs,
// finalizers, and the status as a resource of its own. It tells a watcher of each change, in order.
type kubeAPI struct {
	client.Client // what no test calls
	scheme        *runtime.Scheme

	mu      sync.Mutex
	version int
	objects map[kubeKey]client.Object
	watcher watcher
	// before is called before an object is replaced, if it is set: others may change it then.
	before func(client.Object)
}

type kubeKey struct{ kind, namespace, name string }

// watcher is told of changes.
type watcher interface {
	Seen(kind string, object client.Object)
	Gone(kind, name string)
}

func newKubeAPI() *kubeAPI {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return &kubeAPI{scheme: scheme, objects: map[kubeKey]client.Object{}}
}

// watch tells a watcher of all objects, and of each change from then on; nil ends that.
func (k *kubeAPI) watch(w watcher) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watcher = w
	if w == nil {
		return
	}
	for key, o := range k.objects {
		w.Seen(key.kind, told(o))
	}
}

// clone copies an object as it goes to the API server and back: its times have whole seconds then.
func clone(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	if v, ok := o.(*v1alpha1.PoolVolume); ok {
		for _, at := range []*metav1.Time{v.Status.RetainedSince, v.Status.RetainedUntil} {
			if at != nil {
				*at = at.Rfc3339Copy()
			}
		}
	}
	return o
}

// told is an object as a watch tells it: of metadata alone the kind is not that of the object.
func told(o client.Object) client.Object {
	o = clone(o)
	if _, ok := o.(*metav1.PartialObjectMetadata); ok {
		o.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	}
	return o
}

func (k *kubeAPI) keyOf(o client.Object, name types.NamespacedName) kubeKey {
	gvk, err := apiutil.GVKForObject(o, k.scheme)
	if err != nil {
		panic(err)
	}
	return kubeKey{gvk.Kind, name.Namespace, name.Name}
}

func (k *kubeAPI) resource(key kubeKey) schema.GroupResource {
	return schema.GroupResource{Resource: key.kind}
}

// store keeps an object under a new version; mu is held.
func (k *kubeAPI) store(key kubeKey, o client.Object) {
	k.version++
	o.SetResourceVersion(strconv.Itoa(k.version))
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		delete(k.objects, key)
		if k.watcher != nil {
			k.watcher.Gone(key.kind, strings.TrimPrefix(key.namespace+"/"+key.name, "/"))
		}
		return
	}
	k.objects[key] = clone(o)
	if k.watcher != nil {
		k.watcher.Seen(key.kind, told(o))
	}
}

func (k *kubeAPI) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.keyOf(into, name)
	o, ok := k.objects[key]
	if !ok {
		return apierrors.NewNotFound(k.resource(key), name.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(clone(o)).Elem())
	return nil
}

func (k *kubeAPI) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	gvk, err := apiutil.GVKForObject(list, k.scheme)
	if err != nil {
		return err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var found []runtime.Object
	for key, o := range k.objects {
		labelled := options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(o.GetLabels()))
		if key.kind+"List" == gvk.Kind && labelled && (options.Namespace == "" || options.Namespace == key.namespace) {
			found = append(found, clone(o))
		}
	}
	slices.SortFunc(found, func(a, b runtime.Object) int {
		if a.(client.Object).GetName() < b.(client.Object).GetName() {
			return -1
		}
		return 1
	})
	return meta.SetList(list, found)
}

func (k *kubeAPI) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.keyOf(o, client.ObjectKeyFromObject(o))
	if _, ok := k.objects[key]; ok {
		return apierrors.NewAlreadyExists(k.resource(key), o.GetName())
	}
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", k.version+1)))
	o.SetCreationTimestamp(metav1.Now())
	setStatusOf(o, nil)
	k.store(key, o)
	return nil
}

func (k *kubeAPI) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return k.update(o, func(was client.Object) { setStatusOf(o, was) })
}

// update replaces an object, after keep has put back into it what the call must not change.
func (k *kubeAPI) update(o client.Object, keep func(was client.Object)) error {
	k.mu.Lock()
	before := k.before
	k.mu.Unlock()
	if before != nil {
		before(o)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.keyOf(o, client.ObjectKeyFromObject(o))
	was, ok := k.objects[key]
	if !ok || o.GetUID() != "" && o.GetUID() != was.GetUID() {
		return apierrors.NewNotFound(k.resource(key), o.GetName())
	}
	if o.GetResourceVersion() != "" && o.GetResourceVersion() != was.GetResourceVersion() {
		return apierrors.NewConflict(k.resource(key), o.GetName(), fmt.Errorf("it is version %s", was.GetResourceVersion()))
	}
	keep(was)
	o.SetDeletionTimestamp(was.GetDeletionTimestamp())
	k.store(key, o)
	return nil
}

func (k *kubeAPI) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.keyOf(o, client.ObjectKeyFromObject(o))
	was, ok := k.objects[key]
	if !ok {
		return apierrors.NewNotFound(k.resource(key), o.GetName())
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != was.GetUID() {
		return apierrors.NewConflict(k.resource(key), o.GetName(), fmt.Errorf("its UID is %s", was.GetUID()))
	}
	if was.GetDeletionTimestamp() != nil {
		return nil
	}
	now, next := metav1.Now(), clone(was)
	next.SetDeletionTimestamp(&now)
	k.store(key, next)
	return nil
}

// setStatusOf gives an object another's status; nil: an empty one.
func setStatusOf(o, from client.Object) {
	status := reflect.ValueOf(o).Elem().FieldByName("Status")
	switch {
	case !status.IsValid():
	case from == nil:
		status.SetZero()
	default:
		status.Set(reflect.ValueOf(clone(from)).Elem().FieldByName("Status"))
	}
}

func (k *kubeAPI) Status() client.SubResourceWriter { return kubeStatus{api: k} }

type kubeStatus struct {
	client.SubResourceWriter // what no test calls
	api                      *kubeAPI
}

func (k kubeStatus) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return k.api.update(o, func(was client.Object) {
		wanted := clone(o)
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(clone(was)).Elem())
		setStatusOf(o, wanted)
	})
}
