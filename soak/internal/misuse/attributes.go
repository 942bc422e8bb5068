package misuse

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
)

// illegal are values that no pod may give an attribute, and keys that are none. The volume of
// a bad call is not read-only, so that it can attach nothing.
var illegal = map[string][]string{
	"sizeLimit":         {"", "0", "-1Gi", "63Ki", "10GB", "ten", "1 Gi", "1e99", "2Ei", strings.Repeat("1", 65)},
	"attach":            {"", "x", "/x", "x/", "a/b/c", "../x/data-0", "x/Data", "x/" + strings.Repeat("y", 320), "pod/volume"},
	"inodeLimit":        {"", "0", "1", "-100k", "many", "2T", "0x10"},
	"lifespan":          {"", "0s", "-1h", "1d", "36", "for ever", "1h\n"},
	"lifespanSucceeded": {"0s", "1week"},
	"mode":              {"", "0", "0888", "4755", "rwx", "07777"},
	"retain":            {"", "always", "Sometimes"},
	// Near to one that there is, or to none.
	"sizelimit":         {"1Gi"},
	"size":              {"1Gi"},
	"lifeSpan":          {"1h"},
	"nobody-knows-this": {"x"},
	"../sizeLimit":      {"1Gi"},
}

// badAttributes ask for what the driver does not do, or is not able to understand: to keep
// silent would promise it.
func badAttributes() (list []bad) {
	for _, key := range sorted(illegal) {
		for _, value := range illegal[key] {
			list = append(list, bad{
				what: fmt.Sprintf("attribute %s: %.70q", key, value), method: history.Publish, code: codes.InvalidArgument,
				fields: []string{key},
				spoil:  func(_ *Site, r *request) { r.context[key] = value },
			})
		}
	}
	return list
}
