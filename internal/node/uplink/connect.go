package uplink

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/api"
)

const (
	// mostFile bounds the files of the CA and the token.
	mostFile = 1 << 20
	// mostToken is far longer than a token of a ServiceAccount.
	mostToken = 32 << 10
	// mostAnswer bounds the answer to a request to connect, and mostMessage what is logged of it.
	mostAnswer  = 64 << 10
	mostMessage = 500
	// mostRetryAfter bounds how long the gateway may tell a node to wait.
	mostRetryAfter = 2 * time.Minute
)

// refusal is an answer of the gateway that is not a connection, or a reason not to connect.
type refusal struct {
	error
	// busy: the same request may succeed later, without that a person does something.
	busy bool
	// retryAfter is how long to wait at least.
	retryAfter time.Duration
}

// refuse returns a refusal that a person has to do something about.
func refuse(format string, values ...any) error {
	return &refusal{error: fmt.Errorf(format, values...)}
}

// Unwrap returns the error behind.
func (r *refusal) Unwrap() error { return r.error }

// connect makes a connection that the gateway uses.
func (l *link) connect(ctx context.Context) (*connection, error) {
	wire, said, err := l.reach(ctx)
	if err != nil {
		return nil, err
	}
	c, err := l.u.serve(l, wire, said)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, l.u.pace.connect)
	defer cancel()
	err = c.inUse(limited)
	if err != nil && ctx.Err() == nil {
		c.cut()
	}
	return c, err
}

// reach makes a connection that the gateway has taken. said is the header of its answer.
func (l *link) reach(ctx context.Context) (w *wire, said http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.u.pace.connect)
	defer cancel()
	token, err := l.u.peer.readToken(l.u.cfg.TokenFile)
	if err != nil {
		return nil, nil, err
	}
	roots, err := l.u.peer.readCA(l.u.cfg.CAFile)
	if err != nil {
		return nil, nil, err
	}
	secure, raw, err := l.dial(ctx, roots)
	if err != nil {
		return nil, nil, err
	}
	rest, said, err := l.upgrade(ctx, secure, token)
	if err != nil {
		raw.Close()
		return nil, nil, err
	}
	return newWire(secure, raw, rest), said, nil
}

func (p peer) readToken(path string) (string, error) {
	content, err := readFile(path)
	advice := "mount a projected token of the ServiceAccount with the audience katbox-" + p.name + " there, " +
		"or name its file with " + p.flag + "-token"
	if err != nil {
		return "", refuse("read the token for %s: %w; %s", p, err, advice)
	}
	token := string(bytes.TrimSpace(content))
	odd := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if token == "" || len(token) > mostToken || odd {
		return "", refuse("the file %s does not contain a token; %s", path, advice)
	}
	return token, nil
}

func (p peer) readCA(path string) (*x509.CertPool, error) {
	content, err := readFile(path)
	advice := "mount the ConfigMap katbox-" + p.name + "-ca there, or name the file with " + p.flag + "-ca"
	if err != nil {
		return nil, refuse("read the CA of %s: %w; %s", p, err, advice)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, refuse("the file %s contains no certificate in PEM; %s", path, advice)
	}
	return roots, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostFile))
}

// dial connects and checks that there is a gateway at the other end.
func (l *link) dial(ctx context.Context, roots *x509.CertPool) (*tls.Conn, *gathered, error) {
	d := net.Dialer{LocalAddr: l.u.cfg.From}
	raw, err := d.DialContext(ctx, "tcp", l.address.String())
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w; check that it runs, and that no NetworkPolicy keeps the node away", l.u.peer, plain(err))
	}
	together := &gathered{Conn: raw}
	secure := tls.Client(together, &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: l.target.host, NextProtos: []string{"http/1.1"},
	})
	if err = secure.HandshakeContext(ctx); err == nil {
		return secure, together, nil
	}
	raw.Close()
	if verify := (*tls.CertificateVerificationError)(nil); errors.As(err, &verify) {
		return nil, nil, refuse("%s's certificate is not accepted: %w; check that %s, the file of %s-ca, has the CA that %s uses now",
			l.u.peer, plain(verify.Err), l.u.cfg.CAFile, l.u.peer.flag, l.u.peer)
	}
	return nil, nil, fmt.Errorf("begin TLS with %s: %w; check that %s names its port for nodes", l.u.peer, plain(err), l.u.peer.flag)
}

// upgrade asks the gateway to take the connection. It returns what the gateway has sent behind its
// answer, and the header of that.
func (l *link) upgrade(ctx context.Context, conn net.Conn, token string) (rest []byte, said http.Header, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+l.target.String()+api.ConnectPath, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header = http.Header{
		"Authorization": {"Bearer " + token}, "Connection": {"Upgrade"}, "Upgrade": {api.ConnectProtocol},
		api.HeaderNode: {l.u.cfg.Node}, api.HeaderVersion: {l.u.cfg.Version},
	}
	if l.u.cfg.Ends {
		request.Header.Set(api.HeaderEnds, "true")
	}
	if err := request.Write(conn); err != nil {
		return nil, nil, fmt.Errorf("ask %s for a connection: %w", l.u.peer, plain(err))
	}
	limited := &io.LimitedReader{R: conn, N: mostAnswer}
	reader := bufio.NewReader(limited)
	answer, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, nil, fmt.Errorf("%s did not answer the request to connect: %w", l.u.peer, plain(err))
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		defer answer.Body.Close()
		return nil, nil, l.refused(answer)
	}
	if !strings.EqualFold(answer.Header.Get("Upgrade"), api.ConnectProtocol) {
		return nil, nil, refuse("%s switches to the protocol %q, and this node speaks %s; are both of versions that belong together?",
			l.u.peer, shorten(answer.Header.Get("Upgrade")), api.ConnectProtocol)
	}
	rest, _ = reader.Peek(reader.Buffered())
	rest = bytes.Clone(rest)
	if !stop() {
		return nil, nil, fmt.Errorf("%s did not answer the request to connect: %w", l.u.peer, errSilent)
	}
	return rest, answer.Header, nil
}

// refused returns why the gateway does not take the connection.
func (l *link) refused(answer *http.Response) error {
	var status api.Status
	body, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer)) // a part of it does as well
	message := answer.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		message = status.Message
	}
	message = shorten(message)
	r := &refusal{}
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16); err == nil {
		r.retryAfter = min(time.Duration(seconds)*time.Second, mostRetryAfter)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		r.error = fmt.Errorf("%s does not accept the node's token (401): %s; check that the token in %s is of the audience katbox-%s",
			l.u.peer, message, l.u.cfg.TokenFile, l.u.peer.name)
	case http.StatusForbidden:
		r.error = fmt.Errorf("%s does not let this node in (403): %s; check that the daemon runs in the namespace and with the "+
			"ServiceAccount that %s expects, and that --nodeid, %s, is the node's name", l.u.peer, message, l.u.peer, l.u.cfg.Node)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		r.busy = true
		r.error = fmt.Errorf("%s has no time (%d): %s", l.u.peer, answer.StatusCode, message)
	default:
		r.error = fmt.Errorf("%s answers the request to connect with %d: %s; check that %s names its port for nodes",
			l.u.peer, answer.StatusCode, message, l.u.peer.flag)
	}
	return r
}

// plain returns why a connection failed, in words that are the same each time: how it is noticed that
// the other end has closed it is a matter of chance, and so is the port at this end.
func plain(err error) error {
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.EPIPE} {
		if errors.Is(err, closed) {
			return errClosed
		}
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return errSilent
	}
	if text := shorten(err.Error()); len(text) < len(err.Error()) {
		return errors.New(text) // it quotes what the other end sent
	}
	return err
}

var (
	errClosed = errors.New("the other end closed the connection")
	errSilent = errors.New("the other end did nothing for too long")
)

// shorten returns a text of the gateway as it can be logged.
func shorten(text string) string {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > mostMessage {
		return string(runes[:mostMessage]) + "..."
	}
	return text
}
