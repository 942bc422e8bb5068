package pools

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchingAPI is a kubeAPI that takes patches, and counts them.
type patchingAPI struct {
	*kubeAPI
	counting sync.Mutex
	patches  map[string]int
	refuse   func(kubeKey) error
	unread   error
}

func newPatchingAPI() *patchingAPI {
	return &patchingAPI{kubeAPI: newKubeAPI(), patches: map[string]int{}}
}

// patchingStatus is the status of its objects.
type patchingStatus struct {
	kubeStatus
	api *patchingAPI
}

func (k *patchingAPI) Status() client.SubResourceWriter {
	return patchingStatus{kubeStatus{api: k.kubeAPI}, k}
}

func (k *patchingAPI) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return k.patch(o, p, func(next, was client.Object) { setStatusOf(next, was) })
}

func (k patchingStatus) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return k.api.patch(o, p, func(next, was client.Object) {
		wanted := clone(next)
		reflect.ValueOf(next).Elem().Set(reflect.ValueOf(clone(was)).Elem())
		setStatusOf(next, wanted)
	})
}

// patch applies a merge patch, after which keep puts back what the call must not change.
func (k *patchingAPI) patch(o client.Object, p client.Patch, keep func(next, was client.Object)) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := k.keyOf(o, client.ObjectKeyFromObject(o))
	was, ok := k.objects[key]
	if !ok {
		return apierrors.NewNotFound(k.resource(key), o.GetName())
	}
	if err := k.counted(key); err != nil {
		return err
	}
	if m, ok := change["metadata"].(map[string]any); ok && m["resourceVersion"] != nil && m["resourceVersion"] != was.GetResourceVersion() {
		return apierrors.NewConflict(k.resource(key), o.GetName(), nil)
	}
	text, err := json.Marshal(was)
	if err != nil {
		return err
	}
	var now map[string]any
	if err := json.Unmarshal(text, &now); err != nil {
		return err
	}
	if text, err = json.Marshal(merged(now, change)); err != nil {
		return err
	}
	next := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, next); err != nil {
		return err
	}
	keep(next, was)
	k.store(key, next)
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(next).Elem())
	return nil
}

// counted counts a patch, unless it is refused.
func (k *patchingAPI) counted(key kubeKey) error {
	k.counting.Lock()
	defer k.counting.Unlock()
	if k.refuse != nil {
		if err := k.refuse(key); err != nil {
			return err
		}
	}
	k.patches[key.kind]++
	return nil
}

// patched returns how many patches of a kind there were.
func (k *patchingAPI) patched(kind string) int {
	k.counting.Lock()
	defer k.counting.Unlock()
	return k.patches[kind]
}

// refusing lets patches fail; nil ends that.
func (k *patchingAPI) refusing(refuse func(kubeKey) error) {
	k.counting.Lock()
	defer k.counting.Unlock()
	k.refuse = refuse
}

// refusingReads lets reads fail; nil ends that.
func (k *patchingAPI) refusingReads(err error) {
	k.counting.Lock()
	defer k.counting.Unlock()
	k.unread = err
}

func (k *patchingAPI) Get(ctx context.Context, name client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	k.counting.Lock()
	err := k.unread
	k.counting.Unlock()
	if err != nil {
		return err
	}
	return k.kubeAPI.Get(ctx, name, into, opts...)
}

// merged is RFC 7386.
func merged(into, change map[string]any) map[string]any {
	for key, value := range change {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap:
			below, _ := into[key].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			into[key] = merged(below, inner)
		default:
			into[key] = value
		}
	}
	return into
}
