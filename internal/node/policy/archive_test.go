package policy

import (
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestArchiveWithinBounds: what a pod asks for is cut to what its namespace may have, which the file moves and the flag turns
// off for all.
func TestArchiveWithinBounds(t *testing.T) {
	const never, onFailure, always = volume.ArchiveNever, volume.ArchiveOnFailure, volume.ArchiveAlways
	const content = `
namespaces:
- match: [all]
  archive: Always
- match: [may]
  maxArchive: Always
- match: [none]
  maxArchive: Never
- match: [asked]
  archive: Never
- match: [both]
  archive: Never
  maxArchive: OnFailure
`
	for _, tt := range []struct {
		flag             volume.Archive
		namespace, asked string
		want             volume.Archive
		cut              string
	}{
		{onFailure, "any", "", onFailure, ""},
		{onFailure, "any", "Never", never, ""},
		{onFailure, "any", "Always", onFailure, "archive from Always to OnFailure"},
		{onFailure, "all", "", always, ""},
		{onFailure, "all", "OnFailure", onFailure, ""},
		{onFailure, "may", "", onFailure, ""},
		{onFailure, "may", "Always", always, ""},
		{onFailure, "none", "", never, ""},
		{onFailure, "none", "OnFailure", never, "archive from OnFailure to Never"},
		{onFailure, "asked", "", never, ""},
		{onFailure, "asked", "OnFailure", onFailure, ""},
		{onFailure, "both", "Always", onFailure, "archive from Always to OnFailure"},
		{always, "any", "", always, ""},
		{never, "any", "Always", never, ""},
		{never, "all", "", never, ""},
		{never, "may", "Always", never, ""},
	} {
		bounds := flags()
		bounds.Archive, bounds.MaxArchive = tt.flag, tt.flag
		p, err := Parse(bounds, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		attributes := map[string]string{}
		if tt.asked != "" {
			attributes["archive"] = tt.asked
		}
		terms, err := p.Terms(tt.namespace, attributes)
		if cut := p.Cut(tt.namespace, attributes); err != nil || terms.Archive != tt.want || cut != tt.cut {
			t.Errorf("--archive=%s, %s asks for %q: %s, %q, %v, want %s, %q", tt.flag, tt.namespace, tt.asked, terms.Archive, cut, err,
				tt.want, tt.cut)
		}
	}
	for _, content := range []string{"{archive: often}", "{archive: Always, maxArchive: Never}", "{maxArchive: 1}"} {
		bounds := flags()
		bounds.Archive, bounds.MaxArchive = onFailure, onFailure
		if _, err := Parse(bounds, []byte("namespaces: [{match: [a], "+content[1:]+"]")); err == nil {
			t.Errorf("%s is accepted", content)
		}
	}
}
