package fakebucket

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

// mostSkew is how far the clock of a client may be off.
const mostSkew = 15 * time.Minute

// signature is what a request says it is signed with.
type signature struct {
	credential, headers, value, date, body string
	// expires is how long it is good.
	expires time.Duration
}

// authentic returns why a request is refused; an empty text if it is not.
func authentic(r *http.Request, now time.Time) (code int, why string) {
	query := r.URL.Query()
	s := signature{date: r.Header.Get("X-Amz-Date"), body: r.Header.Get("X-Amz-Content-Sha256"), expires: mostSkew}
	if fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "); ok {
		for field := range strings.SplitSeq(fields, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
			switch name {
			case "Credential":
				s.credential = value
			case "SignedHeaders":
				s.headers = value
			case "Signature":
				s.value = value
			}
		}
	} else {
		seconds, err := strconv.Atoi(query.Get("X-Amz-Expires"))
		if err != nil || query.Get("X-Amz-Algorithm") != "AWS4-HMAC-SHA256" {
			return http.StatusForbidden, "AccessDenied"
		}
		s = signature{
			query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature"), query.Get("X-Amz-Date"),
			"UNSIGNED-PAYLOAD", time.Duration(seconds) * time.Second,
		}
		query.Del("X-Amz-Signature")
	}
	signed, err := time.Parse("20060102T150405Z", s.date)
	scope := strings.Split(s.credential, "/")
	switch {
	case err != nil, len(scope) != 5, scope[0] != ID, scope[2] != Region:
		return http.StatusForbidden, "InvalidAccessKeyId"
	case now.Before(signed.Add(-mostSkew)):
		return http.StatusForbidden, "RequestTimeTooSkewed"
	case now.After(signed.Add(s.expires)):
		return http.StatusForbidden, "AccessDenied"
	}
	names := strings.Split(s.headers, ";")
	if !slices.Contains(names, "host") {
		return http.StatusForbidden, "AccessDenied"
	}
	if s.value != s.expected(r, query, names, scope) {
		return http.StatusForbidden, "SignatureDoesNotMatch"
	}
	return 0, ""
}

// expected is the signature that the request should have.
func (s signature) expected(r *http.Request, query url.Values, names, scope []string) string {
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	request := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), strings.ReplaceAll(query.Encode(), "+", "%20"), headers.String(), s.headers, s.body,
	}, "\n")
	sum := sha256.Sum256([]byte(request))
	text := "AWS4-HMAC-SHA256\n" + s.date + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + Secret)
	for _, part := range append(slices.Clone(scope[1:]), text) {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	return hex.EncodeToString(key)
}
