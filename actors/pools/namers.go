package pools

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namers are the objects of one kind that name volumes or snapshots, and need them. Of most the name follows from
// that of the volume. One that a person has made may have any, and only a list tells.
type namers struct {
	kind string
	one  func() client.Object
	all  func() client.ObjectList
	// needs returns the volume or snapshot that an object needs; empty if it needs none.
	needs func(client.Object) string

	mu sync.Mutex
	// listed is when the last list began; byHandle has the names of that list, by volume or snapshot.
	listed   time.Time
	byHandle map[string]string
}

// of returns the object that needs a volume or a snapshot; empty where there is none. It looks at the likely names
// before it lists all.
func (n *namers) of(ctx context.Context, from Resources, handle, likely string) (string, error) {
	asked := time.Now()
	for _, name := range []string{handle, likely, n.known(handle)} {
		if name == "" {
			continue
		}
		one := n.one()
		err := from.Get(ctx, client.ObjectKey{Name: name}, one)
		if client.IgnoreNotFound(err) != nil {
			return "", kubernetesError(err, "read the "+n.kind+" "+name)
		}
		if err == nil && n.needs(one) == handle {
			return name, nil
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.listed.After(asked) { // else a list that serves this question too was made while it waited
		if err := n.list(ctx, from); err != nil {
			return "", err
		}
	}
	return n.byHandle[handle], nil
}

func (n *namers) known(handle string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byHandle[handle]
}

// list asks for all objects. A kind that the cluster does not have has none. mu is held.
func (n *namers) list(ctx context.Context, from Resources) error {
	began, byHandle := time.Now(), map[string]string{}
	err := eachOf(ctx, from, n.kind, n.all, func(object client.Object) {
		if handle := n.needs(object); handle != "" {
			byHandle[handle] = object.GetName()
		}
	})
	if err != nil {
		return err
	}
	n.listed, n.byHandle = began, byHandle
	return nil
}

// eachOf lists all objects of a kind, page by page. A kind that the cluster does not have has none.
func eachOf(ctx context.Context, from Resources, kind string, empty func() client.ObjectList, each func(client.Object)) error {
	page := client.ListOptions{Limit: 500}
	for {
		list := empty()
		if err := client.IgnoreNotFound(from.List(ctx, list, &page)); err != nil {
			return kubernetesError(err, "list the "+kind+"s")
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("the list of the %ss has a %T", kind, item)
			}
			each(object)
			return nil
		}); err != nil {
			return err
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return nil
		}
	}
}
