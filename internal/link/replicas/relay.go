package replicas

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// headerRelayed says what came of a request for a node: answered, away or late, or failed.
	headerRelayed = "Katbox-Relayed"
	answered      = "answered"
	away          = "away"
	late          = "late"
	failed        = "failed"
	// headerLimit is how many milliseconds the node may take. Its replica counts a node that takes longer, which it could not
	// if the one that asks just left: so it has a tenth less than that.
	headerLimit = "Katbox-Limit"
	// mostHeader bounds the headers of an answer, mostWhy why there is none.
	mostHeader = 64 << 10
	mostWhy    = 2000
	// streamWindow and connWindow are how much another replica may send that was not read yet, as the hub has it for nodes.
	streamWindow = 512 << 10
	connWindow   = 128 << 20
	// pingAfter is how long a connection may be silent before the other end is asked whether it is there, pingLimit how
	// long that may take.
	pingAfter = 3 * time.Second
	pingLimit = 2 * time.Second
	// mostCertificates bounds what has to be verified of a client that is not known yet.
	mostCertificates = 4
	// copyBuffer is how much of an answer is passed on at once.
	copyBuffer = 32 << 10
)

// errUnconnected: there was no connection yet, so nothing was sent.
var errUnconnected = errors.New("cannot connect")

// newTransport returns what connects to other replicas.
func (r *Replicas) newTransport() *http.Transport {
	t := &http.Transport{
		DialTLSContext: r.dial, DisableCompression: true, MaxResponseHeaderBytes: mostHeader, IdleConnTimeout: time.Minute,
		Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
			SendPingTimeout: pingAfter, PingTimeout: pingLimit,
		},
	}
	t.Protocols.SetHTTP2(true)
	return t
}

// dial connects to a replica, and checks that it is one.
func (r *Replicas) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnconnected, err)
	}
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: r.cfg.Roots(), ServerName: r.cfg.Name,
		NextProtos:           []string{"h2", "http/1.1", hub.ReplicaProtocol},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return r.cfg.Certificate(nil) },
	})
	if err = conn.HandshakeContext(ctx); err == nil && conn.ConnectionState().NegotiatedProtocol != "h2" {
		err = errOlder
	}
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: %w", errUnconnected, err)
	}
	return conn, nil
}

// Verify implements [hub.Replicas]. The certificate is that of a server; a node that sees it there trusts it as much.
func (r *Replicas) Verify(state tls.ConnectionState) error {
	if n := len(state.PeerCertificates); n == 0 || n > mostCertificates {
		return fmt.Errorf("a replica of the gateway shows its certificate, and what signs that: not %d certificates", n)
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		DNSName: r.cfg.Name, Roots: r.cfg.Roots(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// ServeHTTP implements [hub.Replicas]. The connection is one that Verify has let in.
func (r *Replicas) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch path := request.URL.Path; {
	case r.stopping.Err() != nil:
		refuse(w, http.StatusServiceUnavailable, away, "this replica stops")
	case path == nodesPath && request.Method == http.MethodGet:
		r.nodes(w, request)
	case path == api.VolumesPath, path == api.GonePath, path == api.GrepPath, strings.HasPrefix(path, api.VolumesPath+"/"):
		r.pass(w, request)
	default:
		refuse(w, http.StatusNotFound, failed, fmt.Sprintf("there is nothing for a replica at %.300q", path))
	}
}

// refuse answers that a node was not asked, or has not answered.
func refuse(w http.ResponseWriter, code int, outcome, why string) {
	w.Header().Set(headerRelayed, outcome)
	http.Error(w, why, code)
}

// pass passes a request on to a node that is connected here, within the time that it may take.
func (r *Replicas) pass(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	defer context.AfterFunc(r.stopping, cancel)()
	if limit, err := strconv.ParseUint(request.Header.Get(headerLimit), 10, 31); err == nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(limit)*time.Millisecond*9/10)
		defer cancel()
	}
	r.relay.ServeHTTP(w, request.WithContext(ctx))
}

// newRelay returns what passes requests on.
func (r *Replicas) newRelay() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", "node", ""
			p.Out.Header.Del(headerLimit)
		},
		Transport: hereTransport{r},
		ModifyResponse: func(response *http.Response) error {
			response.Header.Set(headerRelayed, answered) // whatever the node says
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, request *http.Request, err error) {
			outcome := failed
			switch {
			case errors.Is(err, hub.ErrAway):
				outcome = away
			case errors.Is(request.Context().Err(), context.DeadlineExceeded):
				outcome = late
			}
			refuse(w, http.StatusBadGateway, outcome, err.Error())
		},
		FlushInterval: -1, BufferPool: buffers{},
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(r.cfg.Log.V(1)), slog.LevelInfo),
	}
}

// hereTransport asks the nodes that are connected here. A request never comes to a third replica.
type hereTransport struct{ *Replicas }

// RoundTrip asks the node that the request names.
func (h hereTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	node := request.Header.Get(api.HeaderNode)
	request.Header.Del(api.HeaderNode)
	return h.cfg.Local.Here(node, request)
}

// buffers are reused.
type buffers struct{}

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Get returns a buffer.
func (buffers) Get() []byte { return copyBuffers.Get().(*[copyBuffer]byte)[:] }

// Put takes it back.
func (buffers) Put(b []byte) { copyBuffers.Put((*[copyBuffer]byte)(b)) }

// Ask implements [hub.Replicas].
func (r *Replicas) Ask(node string, request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	why := fmt.Errorf("%w: %s", hub.ErrAway, node)
	for _, a := range r.holders(node) {
		response, err := r.askAt(a, node, request)
		switch {
		case err == nil:
			return response, nil
		case request.Context().Err() != nil:
			return nil, err
		case errors.Is(err, hub.ErrAway):
		// A node that one replica has waited for in vain is not there for another one in what is left of the time.
		case errors.Is(err, context.DeadlineExceeded), !reads(request):
			return nil, err
		default:
			why = err
		}
	}
	return nil, why
}

// reads reports whether a request changes nothing, so that it may be sent twice.
func reads(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

// askAt asks a node over a connection of the replica at an address. The error wraps [hub.ErrAway] where nothing was sent.
func (r *Replicas) askAt(a netip.AddrPort, node string, request *http.Request) (*http.Response, error) {
	out := request.Clone(request.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = "https", a.String(), "", ""
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	out.Header.Set(api.HeaderNode, node)
	if end, ok := request.Context().Deadline(); ok {
		out.Header.Set(headerLimit, strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10))
	}
	response, err := r.transport.RoundTrip(out)
	if errors.Is(err, errUnconnected) {
		return nil, fmt.Errorf("%w: the replica at %s cannot be reached: %w", hub.ErrAway, a, err)
	}
	if err != nil {
		return nil, fmt.Errorf("by the replica at %s: %w", a, err)
	}
	outcome := response.Header.Get(headerRelayed)
	if outcome == answered {
		response.Header.Del(headerRelayed)
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, mostWhy)) // a part of it does as well
	switch why := strings.TrimSpace(string(text)); outcome {
	case away:
		return nil, fmt.Errorf("%w: %s: %s", hub.ErrAway, node, why)
	case late:
		return nil, fmt.Errorf("by the replica at %s: %w: %s", a, context.DeadlineExceeded, why)
	default:
		return nil, fmt.Errorf("by the replica at %s: %s: %s", a, response.Status, why)
	}
}
