package hub

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// connectLimit is how long a client may take for the TLS handshake and its request.
	connectLimit = 10 * time.Second
	// mostRelayed is how many requests another replica may send at once over a connection: those of 16 lists, and some streams.
	mostRelayed = 4096 + 256
	// mostRequest bounds the header of a request to connect. A token has some 1,000 bytes. With the handshake before it a client that is
	// neither a node nor a replica yet sends no more than mostUnknown.
	mostRequest = 16 << 10
	mostUnknown = mostRequest + 8<<10
)

// Server returns a server for the port that nodes connect to. Its ServeTLS needs no files if the
// configuration has certificates, and its listener is one of [Registry.Bounded].
func (r *Registry) Server(config *tls.Config) *http.Server {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = []string{"http/1.1"}
	// A node connects once in an hour; a ticket would be of no use to it.
	config.SessionTicketsDisabled = true
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	if r.Replicas != nil {
		protocols.SetHTTP2(true)
		config.GetConfigForClient = r.tellApart(config.Clone())
		config.NextProtos = []string{"h2", "http/1.1"} // for net/http alone, which looks here whether to have HTTP/2
	}
	s := &http.Server{
		Handler: r, TLSConfig: config, Protocols: protocols, ConnState: changed, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostRelayed},
		// A replica passes on headers of mostSent; those of nodes are bounded before, by mostUnknown and mostRequest.
		ReadHeaderTimeout: connectLimit, ReadTimeout: connectLimit, IdleTimeout: connectLimit, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(r.Log.V(1)), slog.LevelInfo),
	}
	return s
}

// ReplicaProtocol is what another replica names beside HTTP/2 where it begins TLS.
const ReplicaProtocol = "katbox-replica/2"

// tellApart lets other replicas ask with HTTP/2, and with a certificate that is looked at; all others are nodes.
func (r *Registry) tellApart(nodes *tls.Config) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	replicas := nodes.Clone()
	replicas.NextProtos = []string{"h2"}
	replicas.ClientAuth, replicas.VerifyConnection = tls.RequireAnyClientCert, r.Replicas.Verify
	return func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, ReplicaProtocol) {
			return replicas, nil
		}
		return nodes, nil
	}
}

// changed lets a connection of another replica leave the crowd of those that may be anybody's. Where HTTP/2 begins, the handshake is
// over: the client has the key of the certificate that Verify has seen.
func changed(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(*tls.Conn); ok && state == http.StateActive && isReplica(secure.ConnectionState()) {
		ops.Keep(conn)
	}
	ops.Changed(conn, state)
}

// isReplica reports whether a client is another replica. The version that a request names says nothing.
func isReplica(state tls.ConnectionState) bool {
	return state.NegotiatedProtocol == "h2" && len(state.PeerCertificates) > 0
}

// Bounded bounds the connections of [Registry.Server] that have not been upgraded. Each address has a share: one that
// makes many loses its own, and no other one's.
func (r *Registry) Bounded(l net.Listener) net.Listener {
	crowd := ops.NewBoundedListener(l, r.limits.silent, r.limits.asking)
	crowd.Most = mostUnknown
	crowd.Dropped = func() { r.Metrics.ConnectionAsked(Busy) }
	return records{crowd}
}

// refusal is why a node may not connect. outcome is for the metric.
type refusal struct {
	code    int
	outcome string
	message string
	// retry: the node may try again after this time.
	retry time.Duration
}

func refuse(code int, format string, values ...any) *refusal {
	return &refusal{code: code, outcome: Refused, message: fmt.Sprintf(format, values...)}
}

// later refuses a node that may try again. The times differ, so that nodes do not come back together.
func later(outcome, format string, values ...any) *refusal {
	no := refuse(http.StatusServiceUnavailable, format, values...)
	no.outcome = outcome
	no.retry = time.Duration(2+rand.IntN(9)) * time.Second
	return no
}

// reasons are Kubernetes' words for the codes of refusals.
var reasons = map[int]api.Reason{
	http.StatusBadRequest: api.BadRequest, http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden",
	http.StatusNotFound: api.NotFound, http.StatusMethodNotAllowed: api.MethodNotAllowed,
	http.StatusUpgradeRequired: api.BadRequest, http.StatusRequestHeaderFieldsTooLarge: api.BadRequest,
	http.StatusServiceUnavailable: api.ServiceUnavailable,
}

// ServeHTTP takes the connection of a node.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.Replicas != nil && request.TLS != nil && isReplica(*request.TLS) {
		r.Replicas.ServeHTTP(w, request) // Verify has seen its certificate
		return
	}
	who, no := r.admit(request)
	if no != nil {
		r.Metrics.ConnectionAsked(no.outcome)
		if r.refusals.Allow() {
			r.Log.Info("refused a connection", "address", request.RemoteAddr, "claims", truncate(request.Header.Get(api.HeaderNode)),
				logkeys.Node, who.Node, logkeys.Pod, who.Pod, logkeys.Cause, no.message)
		}
		no.write(w)
		return
	}
	if err := r.upgrade(w, who, request.Header); err != nil {
		r.Metrics.ConnectionAsked(Failed)
		r.Log.V(1).Info("a connection was lost while it was upgraded", logkeys.Node, who.Node, logkeys.Cause, err.Error())
	}
}

func (no *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	// Who is refused comes back with a new connection, if at all.
	w.Header().Set("Connection", "close")
	if no.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.retry/time.Second)))
	}
	if no.code == http.StatusUpgradeRequired {
		w.Header().Set("Upgrade", api.ConnectProtocol)
	}
	w.WriteHeader(no.code)
	_ = json.NewEncoder(w).Encode(api.Status{
		Kind: "Status", Status: "Failure", Code: no.code, Reason: reasons[no.code], Message: no.message,
	})
}

// truncate bounds what a client sent for the log.
func truncate(text string) string { return text[:min(len(text), mostField)] }

// admit decides whether a node may connect, and returns who it is.
func (r *Registry) admit(request *http.Request) (Identity, *refusal) {
	token, no := readRequest(request)
	if no != nil {
		return Identity{}, no
	}
	if r.ctx.Err() != nil {
		return Identity{}, later(Busy, "this replica stops; connect to another one, or to it later")
	}
	who, no := r.review(request.Context(), ops.Source(request.RemoteAddr), token)
	if no != nil {
		return who, no
	}
	if who.Namespace != r.Namespace || who.ServiceAccount != r.ServiceAccount {
		return who, refuse(http.StatusForbidden, "the token is that of ServiceAccount %s/%s, and daemons run as %s/%s",
			who.Namespace, who.ServiceAccount, r.Namespace, r.ServiceAccount)
	}
	if who.Pod == "" || who.PodUID == "" {
		return who, refuse(http.StatusForbidden, "the token is not bound to a pod; mount a projected token into the daemon's pod")
	}
	if no := r.checkPod(request.Context(), &who); no != nil {
		return who, no
	}
	if claimed := request.Header.Get(api.HeaderNode); claimed != who.Node {
		return who, refuse(http.StatusForbidden, "the daemon calls itself %q (--nodeid), but its token is that of a pod on node %q",
			truncate(claimed), who.Node)
	}
	return who, nil
}

// readRequest returns the token of a request that is well-formed.
func readRequest(request *http.Request) (token string, no *refusal) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	switch {
	case request.TLS == nil:
		return "", refuse(http.StatusForbidden, "nodes connect with TLS only")
	case headerSize(request) > mostRequest:
		return "", refuse(http.StatusRequestHeaderFieldsTooLarge, "a request to connect has %d bytes at most", mostRequest)
	case request.URL.Path != api.ConnectPath:
		return "", refuse(http.StatusNotFound, "nodes connect to %s, and nothing else is served here", api.ConnectPath)
	case request.Method != http.MethodGet:
		return "", refuse(http.StatusMethodNotAllowed, "nodes connect with GET")
	case request.Header.Get("Upgrade") != api.ConnectProtocol || !strings.EqualFold(request.Header.Get("Connection"), "upgrade"):
		return "", refuse(http.StatusUpgradeRequired, "nodes ask for an upgrade to %s; is the daemon of another version?",
			api.ConnectProtocol)
	case request.ContentLength != 0:
		return "", refuse(http.StatusBadRequest, "a request to connect has no body")
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return "", refuse(http.StatusUnauthorized, "the request has no bearer token; --gateway-token names its file")
	}
	return token, nil
}

// review finds out whose the token is: by the cluster's keys if that is clear, else from the API server, when it is this request's turn.
func (r *Registry) review(ctx context.Context, address, token string) (Identity, *refusal) {
	leave, ok := r.queue.enter(address)
	if !ok {
		return Identity{}, later(Busy, "too many connections come from the address %s at once; try again in a moment", address)
	}
	defer leave()
	waiting, cancel := context.WithTimeout(ctx, r.limits.wait)
	defer cancel()
	reviews := r.reviews
	if who, clear := r.read(waiting, token); clear {
		leave, confirmed := r.account.enter(waiting, who.ServiceAccountUID)
		if confirmed {
			r.Metrics.TokenRead()
			r.renew(token)
			return who, nil
		}
		defer leave()
		reviews = r.account.reviews
	} else if r.lists() {
		return Identity{}, later(Busy, "this replica has just begun, and lists the daemons' pods; try again in a moment")
	} else {
		// The rate comes last: what waits for a slow API server must not reach it all at once afterwards.
		select {
		case r.reviewing <- struct{}{}:
			defer func() { <-r.reviewing }()
		case <-waiting.Done():
			return Identity{}, later(Busy, "too many nodes connect at once, or the API server is slow; try again in a moment")
		}
	}
	if err := reviews.Wait(waiting); err != nil {
		return Identity{}, later(Busy, "too many nodes connect at once; try again in a moment")
	}
	who, err := r.ask(ctx, token)
	switch {
	case errors.Is(err, ErrToken):
		return Identity{}, refuse(http.StatusUnauthorized, "%v", err)
	case err != nil:
		return Identity{}, later(Failed, "the API server cannot be asked about the token: %v", err)
	}
	return who, nil
}

// ask asks the API server whose the token is.
func (r *Registry) ask(ctx context.Context, token string) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.review)
	defer cancel()
	began := time.Now()
	who, err := r.Reviewer.Review(ctx, token)
	r.Metrics.TokenReviewed(outcome(err))
	if err == nil && who.Namespace == r.Namespace && who.ServiceAccount == r.ServiceAccount {
		r.account.confirm(who.ServiceAccountUID, began)
	}
	return who, err
}

// outcome is what the metric says of a TokenReview.
func outcome(err error) string {
	switch {
	case err == nil:
		return Accepted
	case errors.Is(err, ErrToken):
		return Refused
	}
	return Failed
}

// checkPod compares the token's pod with what is known of it, and finds out its node if the token
// does not say it. A pod that is not known yet is read once.
func (r *Registry) checkPod(ctx context.Context, who *Identity) *refusal {
	pod, known := r.Expected.Pod(who.PodUID)
	if !known || pod.Node == "" {
		reading, cancel := context.WithTimeout(ctx, r.limits.review)
		defer cancel()
		var err error
		if pod, err = r.Expected.Read(reading, who.Pod); errors.Is(err, ErrNoPod) {
			return refuse(http.StatusForbidden, "there is no pod %s any more", who.Pod)
		} else if err != nil {
			return later(Failed, "the API server cannot be asked about the daemon's pod: %v", err)
		}
	}
	switch {
	case pod.UID != who.PodUID || pod.Name != who.Pod:
		return refuse(http.StatusForbidden, "the token is that of an earlier pod %s", who.Pod)
	case pod.Node == "":
		return later(Failed, "pod %s is on no node yet", who.Pod)
	case cmp.Or(who.Node, pod.Node) != pod.Node:
		return refuse(http.StatusForbidden, "the token says node %q, and pod %s is on node %q", who.Node, who.Pod, pod.Node)
	}
	who.Node = pod.Node
	return nil
}

// upgrade makes the connection of the request one that the gateway sends requests on.
func (r *Registry) upgrade(w http.ResponseWriter, who Identity, said http.Header) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	c, err := r.switchProtocols(conn, buffered, who, said)
	if err != nil {
		_ = conn.Close()
		return err
	}
	if err := r.register(c); err != nil {
		return err
	}
	c.start()
	return nil
}

func (r *Registry) switchProtocols(conn net.Conn, buffered *bufio.ReadWriter, who Identity, said http.Header) (*connection, error) {
	if buffered.Reader.Buffered() > 0 {
		return nil, errors.New("the node sent something before the answer")
	}
	if err := conn.SetDeadline(time.Now().Add(connectLimit)); err != nil {
		return nil, err
	}
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.ConnectProtocol + "\r\n" +
		api.HeaderReplica + ": " + r.id + "\r\n"
	if r.Replicas != nil && r.Replicas.Forward() {
		answer += api.HeaderForwards + ": true\r\n"
	}
	answer += "\r\n"
	if _, err := conn.Write([]byte(answer)); err != nil {
		return nil, err
	}
	c, err := r.open(conn, who.Node, who.PodUID, truncate(said.Get(api.HeaderVersion)))
	if err != nil {
		return nil, err
	}
	c.ends = said.Get(api.HeaderEnds) != ""
	return c, conn.SetDeadline(time.Time{})
}
