package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Needs are what an array has to be able to do for a volume. It can be compared.
type Needs struct {
	Protocol                  Protocol
	Compress, Dedupe, Encrypt bool
	// Options are further fields of the array's own request, as text.
	Options string
}

// OptionsText writes fields of an array's request for Needs.
func OptionsText(fields ...map[string]string) string {
	all := map[string]string{}
	for _, some := range fields {
		maps.Copy(all, some)
	}
	var text []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text = append(text, fmt.Sprintf("%.40s=%.40s", key, all[key]))
	}
	return strings.Join(text, " ")
}

// String is for people.
func (n Needs) String() string {
	text := []string{"the protocol " + string(n.Protocol)}
	for _, flag := range []struct {
		set  bool
		name string
	}{{n.Compress, "compress"}, {n.Dedupe, "dedupe"}, {n.Encrypt, "encrypt"}, {n.Options != "", n.Options}} {
		if flag.set {
			text = append(text, flag.name)
		}
	}
	return strings.Join(text, ", ")
}
