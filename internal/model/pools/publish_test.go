package pools

import (
	"maps"
	"strings"
	"testing"
)

func TestPublishContextTellsTheNodeOfTheAttachment(t *testing.T) {
	for _, a := range []Attachment{
		{Protocol: NFS, Export: "10.0.0.1:/export/v1"},
		{Protocol: NFS, Export: "10.0.0.1:/export/v1", ReadOnly: true},
		{Protocol: ISCSI, Target: "iqn.x", Portal: "10.0.0.1:3260", LUN: 3, Serial: "volume-00000001", CHAPSecret: "chap-p", FSType: "xfs"},
		{Protocol: ISCSI, Target: "iqn.x", Portal: "10.0.0.1:3260", Serial: "volume-00000001", WWID: "naa.6001405e", FSType: "xfs"},
	} {
		got, err := ParsePublishContext(a.PublishContext(false))
		if err != nil || got != a {
			t.Errorf("a node learns %+v of %+v (%v)", got, a, err)
		}
	}
}

func TestPublishContextThatIsNotAcceptable(t *testing.T) {
	disk := Attachment{Protocol: ISCSI, Target: "iqn.x", Portal: "10.0.0.1:3260", LUN: 3, Serial: "volume-00000001"}.PublishContext(true)
	for key, value := range map[string]string{KeyProtocol: "smb", KeyTarget: "", KeyPortal: "", KeyLUN: "16384", KeySerial: ""} {
		c := maps.Clone(disk)
		c[key] = value
		if _, err := ParsePublishContext(c); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s %q: error %v, want one that names it", key, value, err)
		}
	}
	if _, err := ParsePublishContext(map[string]string{KeyProtocol: string(NFS)}); err == nil || !strings.Contains(err.Error(), KeyExport) {
		t.Errorf("no export: error %v, want one that names it", err)
	}
}

// TestExportIsWrittenAsTheKernelDoes: by what the mount table shows, a volume is found again.
func TestExportIsWrittenAsTheKernelDoes(t *testing.T) {
	for is, want := range map[string]string{
		"nas:/export/x":           "nas:/export/x",
		"nas:/export/x/":          "nas:/export/x",
		"nas://export///x//":      "nas:/export/x",
		"nas:/./export/./x/.":     "nas:/export/x",
		"nas:/":                   "nas:/",
		"[fd00::1]:/a:/b/":        "[fd00::1]:/a:/b",
		"nas:/export/../x/":       "nas:/export/../x/", // refused later
		"nas":                     "nas",               // too
		"10.0.0.1:/export/a b/..": "10.0.0.1:/export/a b/..",
	} {
		if got := CleanExport(is); got != want {
			t.Errorf("%s: %s, want %s", is, got, want)
		}
	}
}
