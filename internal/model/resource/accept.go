package resource

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Form is a form of an answer.
type Form int

// The forms of an answer, all in JSON.
const (
	// AsObject is the volume or the list itself.
	AsObject Form = iota
	// AsTable is a table with rows and columns, as kubectl get shows it.
	AsTable
	// AsMetadata is the metadata alone.
	AsMetadata
)

// maxAccept bounds how many media types of a header are looked at.
const maxAccept = 32

// Accept returns the form that a client wants: the first one of its Accept header that there is, or
// those with the highest q.
func Accept(header http.Header) (Form, *apierrors.StatusError) {
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return AsObject, nil
	}
	form, best := AsObject, 0.0
	for i, part := range strings.Split(accept, ",") {
		if i == maxAccept {
			break
		}
		if f, q, ok := formOf(part); ok && q > best {
			form, best = f, q
		}
	}
	if best == 0 {
		return AsObject, NotAcceptable("%q is not possible; there are application/json, and application/json;as=Table;v=v1;g=meta.k8s.io "+
			"and ...;as=PartialObjectMetadata", accept)
	}
	return form, nil
}

// NotAcceptable says that there is no answer of the kind that the client accepts.
func NotAcceptable(format string, values ...any) *apierrors.StatusError {
	return Error(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "", format, values...)
}

// formOf reads one media type of an Accept header.
func formOf(part string) (form Form, q float64, ok bool) {
	media, params, err := mime.ParseMediaType(part)
	if err != nil || media != "application/json" && media != "application/*" && media != "*/*" {
		return AsObject, 0, false
	}
	q = 1
	if text, given := params["q"]; given {
		if q, err = strconv.ParseFloat(text, 64); err != nil || q < 0 || q > 1 {
			return AsObject, 0, false
		}
	}
	switch as := params["as"]; {
	case as == "":
		return AsObject, q, true
	case params["g"] != metav1.GroupName || params["v"] != "v1":
		return AsObject, 0, false
	case as == "Table":
		return AsTable, q, true
	case as == "PartialObjectMetadata" || as == "PartialObjectMetadataList":
		return AsMetadata, q, true
	}
	return AsObject, 0, false
}
