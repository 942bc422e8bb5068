package bucket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	// unsigned stands for the checksum of a body that is not part of the signature.
	unsigned   = "UNSIGNED-PAYLOAD"
	timeForm   = "20060102T150405Z"
	dateForm   = "20060102"
	service    = "s3"
	terminator = "aws4_request"
)

// emptySum is the checksum of no bytes.
var emptySum = hex.EncodeToString(sumOf(nil))

// signer makes signatures for one store.
type signer struct {
	credentials
	region string
}

// authorize signs a request without a body, with a header.
func (s signer) authorize(r *http.Request, now time.Time) {
	r.Header.Set("X-Amz-Date", now.UTC().Format(timeForm))
	r.Header.Set("X-Amz-Content-Sha256", emptySum)
	if s.token != "" {
		r.Header.Set("X-Amz-Security-Token", s.token)
	}
	headers := signedHeaders(r.Header)
	signature := s.sign(r.Method, r.URL, r.URL.Query(), r.Header, headers, emptySum, now)
	r.Header.Set("Authorization", algorithm+" Credential="+s.id+"/"+s.scope(now)+",SignedHeaders="+headers+",Signature="+signature)
}

// presign returns the URL with a signature in its query. Who sends the request has to send the headers, too.
func (s signer) presign(method string, to *url.URL, header http.Header, expires time.Duration, now time.Time) *url.URL {
	headers := signedHeaders(header)
	query := to.Query()
	query.Set("X-Amz-Algorithm", algorithm)
	query.Set("X-Amz-Credential", s.id+"/"+s.scope(now))
	query.Set("X-Amz-Date", now.UTC().Format(timeForm))
	query.Set("X-Amz-Expires", strconv.Itoa(int(expires.Seconds())))
	query.Set("X-Amz-SignedHeaders", headers)
	if s.token != "" {
		query.Set("X-Amz-Security-Token", s.token)
	}
	signature := s.sign(method, to, query, header, headers, unsigned, now)
	signed := *to
	signed.RawQuery = encodeQuery(query) + "&X-Amz-Signature=" + signature
	return &signed
}

// sign returns the signature of a request.
func (s signer) sign(method string, to *url.URL, query url.Values, header http.Header, headers, body string, now time.Time) string {
	canonical := strings.Join([]string{
		method, to.EscapedPath(), encodeQuery(query), canonicalHeaders(to.Host, header, headers), headers, body,
	}, "\n")
	text := strings.Join([]string{
		algorithm, now.UTC().Format(timeForm), s.scope(now), hex.EncodeToString(sumOf([]byte(canonical))),
	}, "\n")
	key := []byte("AWS4" + s.secret)
	for _, part := range []string{now.UTC().Format(dateForm), s.region, service, terminator} {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func (s signer) scope(now time.Time) string {
	return strings.Join([]string{now.UTC().Format(dateForm), s.region, service, terminator}, "/")
}

// signedHeaders are the names of all headers, and of the host.
func signedHeaders(header http.Header) string {
	names := []string{"host"}
	for name := range header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	return strings.Join(names, ";")
}

func canonicalHeaders(host string, header http.Header, headers string) string {
	var text strings.Builder
	for name := range strings.SplitSeq(headers, ";") {
		value := host
		if name != "host" {
			value = strings.TrimSpace(header.Get(name))
		}
		text.WriteString(name + ":" + value + "\n")
	}
	return text.String()
}

// encodeQuery is [url.Values.Encode] with a space as %20, as signatures have it.
func encodeQuery(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

func sumOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
