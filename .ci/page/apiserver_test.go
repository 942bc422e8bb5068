package page

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// katboxAPI is what the API server leaves to the gateway.
const katboxAPI = "/apis/katbox.io/v1alpha1"

// apiServer does what kube-apiserver does for an aggregated API: it knows users by token or
// certificate, asks for their rights, removes what they say about who they are, and asks the gateway
// in its own name. It serves nothing else but reviews of oneself, and a secret that only its owner
// should ever see.
type apiServer struct {
	http    *httptest.Server
	serving *authority
	clients *authority

	mu sync.Mutex
	// asked are the requests, in the words "USER VERB PATH?QUERY".
	asked []string
	// down answers all requests with 503, as when the gateway is away.
	down bool
}

// canary is what no request through the page may read.
const canary = "canary-of-the-cluster"

// newAPIServer starts a server that passes requests on to the gateway at the address.
func newAPIServer(t testing.TB, gateway string, gatewayCA, proxies *authority) *apiServer {
	t.Helper()
	s := &apiServer{serving: newAuthority(t, "API server"), clients: newAuthority(t, "clients")}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	to := &http.Transport{
		Protocols: protocols, DisableCompression: true,
		TLSClientConfig: &tls.Config{
			RootCAs: gatewayCA.pool(), ServerName: "localhost", MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{proxies.issue(t, "front-proxy-client", x509.ExtKeyUsageClientAuth)},
		},
	}
	proxy := &httputil.ReverseProxy{
		Transport: to, FlushInterval: 200 * time.Millisecond,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = &url.URL{Scheme: "https", Host: gateway, Path: r.In.URL.Path, RawQuery: r.In.URL.Query().Encode()}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "error trying to reach service: "+err.Error())
		},
	}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, proxy) }))
	s.http.EnableHTTP2 = true
	s.http.TLS = &tls.Config{
		Certificates: []tls.Certificate{s.serving.issue(t, "kubernetes", x509.ExtKeyUsageServerAuth)},
		ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: s.clients.pool(), MinVersion: tls.VersionTLS12,
	}
	s.http.StartTLS()
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
		to.CloseIdleConnections()
	})
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request, gateway http.Handler) {
	who, ok := authenticate(r)
	if !ok {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, who.name+" "+r.Method+" "+r.URL.RequestURI())
	down := s.down
	s.mu.Unlock()
	audit := uuid.NewString()
	w.Header().Set("Audit-Id", audit)
	group, verb, resource, subresource, namespace := attributes(r)
	switch {
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, map[string]string{"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		review.Status.Allowed = may(who.name, review.Spec.ResourceAttributes)
		answer(w, http.StatusCreated, review)
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		answer(w, http.StatusCreated, authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: who.name, Groups: who.groups}},
		})
	case resource != "" && !who.may(group, verb, resource, subresource, namespace):
		if subresource != "" {
			resource += "/" + subresource
		}
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
			"%s.%s is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q", resource, group, who.name, verb,
			resource, group, namespace))
	case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces":
		var all metav1.PartialObjectMetadataList
		for _, name := range []string{"ci", "empty", "other"} {
			all.Items = append(all.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		answer(w, http.StatusOK, all)
	case r.URL.Path != katboxAPI && !strings.HasPrefix(r.URL.Path, katboxAPI+"/"):
		answer(w, http.StatusOK, map[string]string{"kind": "Secret", "data": canary})
	case down:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"the server is currently unable to handle the request")
	default:
		for name := range r.Header {
			if name == "Authorization" || strings.HasPrefix(name, "X-Remote-") {
				r.Header.Del(name)
			}
		}
		r.Header.Set("X-Remote-User", who.name)
		r.Header["X-Remote-Group"] = append([]string{"system:authenticated"}, who.groups...)
		r.Header.Set("Audit-Id", audit)
		gateway.ServeHTTP(w, r)
	}
}

// authenticate returns who asks.
func authenticate(r *http.Request) (person, bool) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		who, known := people[token]
		return who, known
	}
	if len(r.TLS.PeerCertificates) > 0 {
		for _, who := range people {
			if who.name == r.TLS.PeerCertificates[0].Subject.CommonName {
				return who, true
			}
		}
	}
	return person{}, false
}

// attributes takes a request for a resource apart, as far as it is one.
func attributes(r *http.Request) (group, verb, resource, subresource, namespace string) {
	elements := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case len(elements) > 3 && elements[0] == "apis":
		group, elements = elements[1], elements[3:]
	case len(elements) > 2 && elements[0] == "api":
		elements = elements[2:]
	default:
		return
	}
	if elements[0] == "namespaces" && len(elements) > 2 {
		namespace, elements = elements[1], elements[2:]
	}
	verb = map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
		http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	resource = elements[0]
	switch {
	case len(elements) == 1 && verb == "get":
		verb = "list"
	case len(elements) == 1 && verb == "delete":
		verb = "deletecollection"
	case len(elements) > 2:
		subresource = elements[2]
	}
	return
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	})
}
