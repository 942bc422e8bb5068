package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// place is where objects of a kind are: a resource, such as poolvolumes.
type place struct {
	group, version, resource string
}

func (p place) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: p.group, Resource: p.resource}
}

// key names an object among those of its place.
type key struct{ namespace, name string }

// event is a change of an object, with the object as it was before it and after it.
type event struct {
	kind    string // ADDED, MODIFIED or DELETED
	place   place
	version uint64
	before  *unstructured.Unstructured
	object  *unstructured.Unstructured
}

// statusKinds have a status subresource.
var statusKinds = map[string]bool{"poolclasses": true, "pools": true, "poolvolumes": true, "poolsnapshots": true, "poolattachments": true}

// create adds an object.
func (s *Server) create(p place, namespace string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + strings.ToLower(string(uuid.NewUUID())[:8]))
	}
	k := key{namespace, o.GetName()}
	if k.name == "" {
		return nil, apierrors.NewBadRequest("the object has no name")
	}
	if s.objects[p][k] != nil {
		return nil, apierrors.NewAlreadyExists(p.groupResource(), k.name)
	}
	o.SetNamespace(namespace)
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.Now())
	o.SetDeletionTimestamp(nil)
	o.SetGeneration(1)
	if statusKinds[p.resource] {
		delete(o.Object, "status")
	}
	s.put(p, k, o, "ADDED")
	return o, nil
}

// put keeps an object under the next version, and tells of it.
func (s *Server) put(p place, k key, o *unstructured.Unstructured, change string) {
	s.version++
	before := s.objects[p][k]
	o.SetResourceVersion(strconv.FormatUint(s.version, 10))
	if change == "DELETED" {
		delete(s.objects[p], k)
	} else {
		if s.objects[p] == nil {
			s.objects[p] = map[key]*unstructured.Unstructured{}
		}
		s.objects[p][k] = o
	}
	s.events = append(s.events, event{kind: change, place: p, version: s.version, before: before, object: o})
	close(s.changed)
	s.changed = make(chan struct{})
}

// get returns an object, which is not to be changed.
func (s *Server) get(p place, k key) (*unstructured.Unstructured, error) {
	if o := s.objects[p][k]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(p.groupResource(), k.name)
}

// update replaces an object, or its status alone.
func (s *Server) update(p place, k key, o *unstructured.Unstructured, status bool) (*unstructured.Unstructured, error) {
	old, err := s.get(p, k)
	if err != nil {
		return nil, err
	}
	if version := o.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(p.groupResource(), k.name,
			fmt.Errorf("version %s is not the last one, %s", version, old.GetResourceVersion()))
	}
	if uid := o.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(p.groupResource(), k.name, fmt.Errorf("it is another object"))
	}
	next := o.DeepCopy()
	if status {
		next = old.DeepCopy()
		next.Object["status"] = o.Object["status"]
	} else if statusKinds[p.resource] {
		delete(next.Object, "status")
		if status, there := old.Object["status"]; there {
			next.Object["status"] = status
		}
	}
	next.SetNamespace(k.namespace)
	next.SetName(k.name)
	next.SetUID(old.GetUID())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetGeneration(old.GetGeneration())
	if reflect.DeepEqual(next.Object, old.Object) {
		return old, nil
	}
	if !reflect.DeepEqual(next.Object["spec"], old.Object["spec"]) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		s.put(p, k, next, "DELETED")
		return next, nil
	}
	s.put(p, k, next, "MODIFIED")
	return next, nil
}

// patch changes an object, or its status alone, by a merge patch.
func (s *Server) patch(p place, k key, patch map[string]any, status bool) (*unstructured.Unstructured, error) {
	old, err := s.get(p, k)
	if err != nil {
		return nil, err
	}
	merged, _ := merge(old.DeepCopy().Object, patch).(map[string]any)
	return s.update(p, k, &unstructured.Unstructured{Object: merged}, status)
}

// merge is a JSON merge patch (RFC 7386).
func merge(to, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := to.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for field, value := range changes {
		if value == nil {
			delete(object, field)
		} else {
			object[field] = merge(object[field], value)
		}
	}
	return object
}

// remove deletes an object, or only marks it while it has finalizers.
func (s *Server) remove(p place, k key, o metav1.DeleteOptions) error {
	old, err := s.get(p, k)
	if err != nil {
		return err
	}
	if c := o.Preconditions; c != nil && (c.UID != nil && *c.UID != old.GetUID() ||
		c.ResourceVersion != nil && *c.ResourceVersion != old.GetResourceVersion()) {
		return apierrors.NewConflict(p.groupResource(), k.name, fmt.Errorf("it is not the object that was meant"))
	}
	next := old.DeepCopy()
	if len(next.GetFinalizers()) == 0 {
		s.put(p, k, next, "DELETED")
		return nil
	}
	if next.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now())
		next.SetDeletionTimestamp(&now)
		next.SetGeneration(next.GetGeneration() + 1)
		s.put(p, k, next, "MODIFIED")
	}
	return nil
}

// list returns a page of objects in the order of their names, and where the next one begins.
func (s *Server) list(p place, namespace string, selected selector, after string, limit int) (
	items []*unstructured.Unstructured, next string,
) {
	keys := slices.SortedFunc(maps.Keys(s.objects[p]), func(a, b key) int { return strings.Compare(a.text(), b.text()) })
	for _, k := range keys {
		other := namespace != "" && k.namespace != namespace
		if other || k.text() <= after || !selected.matches(s.objects[p][k]) {
			continue
		}
		if limit > 0 && len(items) == limit {
			last := items[len(items)-1]
			return items, key{last.GetNamespace(), last.GetName()}.text()
		}
		items = append(items, s.objects[p][k])
	}
	return items, ""
}

func (k key) text() string { return k.namespace + "/" + k.name }

// statusOf is how an error is answered.
func statusOf(err error) (int, []byte) {
	var failure apierrors.APIStatus
	if !errors.As(err, &failure) {
		failure = apierrors.NewInternalError(err)
	}
	status := failure.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	text, _ := json.Marshal(status)
	return max(int(status.Code), http.StatusBadRequest), text
}
