package trust

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyIdentityIsKept(t *testing.T) {
	made := metav1.NewTime(time.Unix(1, 0))
	got, err := keepIdentity(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", CreationTimestamp: made, ResourceVersion: "7", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"c": "d"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, Finalizers: []string{"f"},
	}})
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", CreationTimestamp: made, ResourceVersion: "7"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}
