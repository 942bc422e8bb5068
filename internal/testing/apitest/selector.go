package apitest

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selector is what a list or a watch selects.
type selector struct {
	labels labels.Selector
	fields fields.Selector
}

// selectorOf reads the selectors of a request. Unlike the real one, the server selects by any field.
func selectorOf(req *http.Request) (s selector, err error) {
	query := req.URL.Query()
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	if s.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	return s, nil
}

func (s selector) matches(o *unstructured.Unstructured) bool {
	if o == nil || !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	has := fields.Set{}
	for _, r := range s.fields.Requirements() {
		if value, there, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(r.Field, ".")...); err == nil && there {
			has[r.Field] = fmt.Sprint(value)
		}
	}
	return s.fields.Matches(has)
}

// change is what a watch is sent of an event; nothing if it is of no object that is, or was, selected.
func (s selector) change(e event) string {
	was, is := s.matches(e.before), e.kind != "DELETED" && s.matches(e.object)
	switch {
	case was && is:
		return "MODIFIED"
	case is:
		return "ADDED"
	case was:
		return "DELETED"
	}
	return ""
}
