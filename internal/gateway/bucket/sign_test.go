package bucket

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestSignaturesOfAmazon: the examples in the documentation of AWS's signatures for S3.
func TestSignaturesOfAmazon(t *testing.T) {
	s := signer{credentials{id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}, "us-east-1"}
	now := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"?max-keys=2&prefix=J": "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		"?lifecycle":           "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://examplebucket.s3.amazonaws.com/"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.authorize(r, now)
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	to, err := url.Parse("https://examplebucket.s3.amazonaws.com/test.txt")
	if err != nil {
		t.Fatal(err)
	}
	const want = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
	if got := s.presign(http.MethodGet, to, nil, 24*time.Hour, now); got.Query().Get("X-Amz-Signature") != want {
		t.Errorf("%s, want %s", got, want)
	}
}
