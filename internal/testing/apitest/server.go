package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// Server is an API server. It begins with the namespace kube-system.
type Server struct {
	http   *httptest.Server
	scheme *runtime.Scheme
	decode runtime.Decoder
	// kinds has the kind of each resource.
	kinds map[place]string

	mu      sync.Mutex
	objects map[place]map[key]*unstructured.Unstructured
	version uint64
	// events are all changes since compacted, the version up to which they are forgotten.
	events    []event
	compacted uint64
	// changed is closed at the next change, cut when all watches are to end.
	changed, cut chan struct{}
	// refuse is asked before each request; nil refuses none.
	refuse func(*http.Request) error
}

// Start starts a server on a port of this machine. Close it.
func Start() *Server {
	s := New()
	s.http = httptest.NewServer(http.HandlerFunc(s.answer))
	return s
}

// New returns a server without a port: only its Client reaches it, also in a bubble of package synctest.
func New() *Server {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	s := &Server{
		scheme: scheme, decode: serializer.NewCodecFactory(scheme).UniversalDeserializer(),
		objects: map[place]map[key]*unstructured.Unstructured{}, changed: make(chan struct{}), cut: make(chan struct{}),
	}
	s.kinds = map[place]string{}
	for kind := range scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		s.kinds[place{kind.Group, kind.Version, resource.Resource}] = kind.Kind
	}
	system := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	system.SetName(metav1.NamespaceSystem)
	if _, err := s.create(place{"", "v1", "namespaces"}, "", system); err != nil {
		panic(err)
	}
	return s
}

// URL is where the server is. One of New is nowhere.
func (s *Server) URL() string { return s.http.URL }

// Kubeconfig is the content of a file for the programs that use the server.
func (s *Server) Kubeconfig() []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {}}]
current-context: test
`, s.URL())
}

// Client returns a client of the server, for the resources of the pools and for those of the core.
func (s *Server) Client() (client.WithWatch, error) {
	groups := []schema.GroupVersion{v1alpha1.GroupVersion, corev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion}
	mapper := meta.NewDefaultRESTMapper(groups)
	for _, group := range groups {
		for kind := range s.scheme.KnownTypes(group) {
			scope := meta.RESTScopeRoot
			switch kind {
			case "Secret", "Lease", "Event", "PersistentVolumeClaim":
				scope = meta.RESTScopeNamespace
			}
			mapper.Add(group.WithKind(kind), scope)
		}
	}
	config := &rest.Config{QPS: -1}
	if s.http == nil {
		config.Host, config.Transport = "http://in-process", inProcess{s}
	} else {
		config.Host = s.URL()
	}
	return client.NewWithWatch(config, client.Options{Scheme: s.scheme, Mapper: mapper})
}

// Close ends all watches and the server.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Refuse sets what is asked before each request: an error answers it. Watches that run are cut.
func (s *Server) Refuse(refuse func(*http.Request) error) {
	s.mu.Lock()
	s.refuse = refuse
	s.mu.Unlock()
	s.Cut()
}

// Cut ends all watches that run, and all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	close(s.cut)
	s.cut = make(chan struct{})
	s.mu.Unlock()
	if s.http != nil {
		s.http.CloseClientConnections()
	}
}

// Compact forgets how it was before: no watch can begin at a version before this one.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.compacted = nil, s.version
}

// request is what a request asks for.
type request struct {
	place
	key
	status bool
}

// parse reads a path such as /apis/GROUP/VERSION/[namespaces/NS/]RESOURCE[/NAME[/status]].
func parse(path string) (r request, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		r.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		r.group, r.version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	r.status = len(parts) == 3 && parts[2] == "status"
	return r, len(parts) < 3 || r.status
}

func (s *Server) answer(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != nil {
		if err := refuse(req); err != nil {
			send(w, nil, err)
			return
		}
	}
	r, ok := parse(req.URL.Path)
	query := req.URL.Query()
	switch {
	case !ok:
		send(w, nil, apierrors.NewBadRequest("path "+req.URL.Path))
	case req.Method == http.MethodGet && query.Get("watch") != "" && query.Get("watch") != "false":
		s.watch(w, req, r)
	case req.Method == http.MethodGet && r.name == "":
		s.answerList(w, req, r)
	default:
		body, err := io.ReadAll(req.Body)
		if err == nil {
			var object *unstructured.Unstructured
			if object, err = s.one(req, r, body); err == nil {
				send(w, shown(req, object), nil)
				return
			}
		}
		send(w, nil, err)
	}
}

// one answers a request for one object.
func (s *Server) one(req *http.Request, r request, body []byte) (*unstructured.Unstructured, error) {
	switch req.Method {
	case http.MethodGet:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.get(r.place, r.key)
	case http.MethodPost, http.MethodPut:
		object, err := s.object(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if req.Method == http.MethodPost {
			return s.create(r.place, r.namespace, object)
		}
		return s.update(r.place, r.key, object, r.status)
	case http.MethodPatch:
		var patch map[string]any
		if err := utiljson.Unmarshal(body, &patch); err != nil {
			return nil, apierrors.NewBadRequest("only merge patches are known: " + err.Error())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.patch(r.place, r.key, patch, r.status)
	case http.MethodDelete:
		var options metav1.DeleteOptions
		if len(body) > 0 {
			if _, _, err := s.decode.Decode(body, nil, &options); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"}},
			s.remove(r.place, r.key, options)
	}
	return nil, apierrors.NewMethodNotSupported(r.groupResource(), req.Method)
}

// object reads an object in JSON or protobuf.
func (s *Server) object(body []byte) (*unstructured.Unstructured, error) {
	typed, kind, err := s.decode.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(*kind)
	return o, nil
}

// answerList answers with a page.
func (s *Server) answerList(w http.ResponseWriter, req *http.Request, r request) {
	limit, _ := strconv.Atoi(req.URL.Query().Get("limit"))
	selected, err := selectorOf(req)
	if err != nil {
		send(w, nil, err)
		return
	}
	s.mu.Lock()
	items, next := s.list(r.place, r.namespace, selected, req.URL.Query().Get("continue"), limit)
	version := s.version
	s.mu.Unlock()
	list := map[string]any{
		"apiVersion": strings.TrimPrefix(r.group+"/"+r.version, "/"), "kind": s.kinds[r.place] + "List",
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(version, 10), "continue": next},
	}
	if partial(req) {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = shown(req, item)
	}
	list["items"] = all
	send(w, list, nil)
}

// partial reports whether only the metadata are wanted.
func partial(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// shown is an object as it is sent.
func shown(req *http.Request, o *unstructured.Unstructured) map[string]any {
	if !partial(req) || o.GetKind() == "Status" {
		return o.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}
}

func send(w http.ResponseWriter, answer map[string]any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		code, text := statusOf(err)
		w.WriteHeader(code)
		_, _ = w.Write(text)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}
