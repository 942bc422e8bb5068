package iscsi

import (
	"errors"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// TestScanOfOtherNames: arrays whose disks have another serial number than the volume's ID, such as those of SCST, which by
// default names a disk by a number and its own name for it.
func TestScanOfOtherNames(t *testing.T) {
	const (
		number = "3f1c2a8c"
		own    = "t10.SCST_BIO3f1c2a8c-vol12"
	)
	for _, tt := range []struct {
		name             string
		serial, wwid     string // what the array has
		there, thereWWID string // what the kernel has there already
		used             bool
		known            string
		is               error
		text             string
	}{
		{name: "for the first time", serial: number, wwid: own},
		{name: "known", serial: number, wwid: own, known: own},
		{name: "another than the one that is known", serial: number, wwid: own, known: "t10.SCST_BIO11111111-vol11", is: attach.ErrNotOurs,
			text: "which is known as"},
		{name: "known, and says another volume's ID", serial: "volume-2", wwid: own, known: own, is: attach.ErrNotOurs},
		{name: "another volume's ID", serial: "volume-2", wwid: own, is: attach.ErrNotOurs, text: "volume-2 there"},
		{name: "another volume's ID in its name", serial: number, wwid: "t10.SCST_BIO3f1c2a8c-volume-2", is: attach.ErrNotOurs},
		{name: "the volume's ID in its name", serial: number, wwid: "t10.SCST_BIO3f1c2a8c-volume-1"},
		{name: "the volume's ID in its name, known by another", serial: number, wwid: "t10.SCST_BIO3f1c2a8c-volume-1", known: own},
		{name: "no name", serial: number, is: attach.ErrNotOurs, text: "VPD page 0x83"},
		{name: "is there and known", serial: number, wwid: own, there: number, thereWWID: own, known: own},
		{name: "is there, used and known", serial: number, wwid: own, there: number, thereWWID: own, used: true, known: own},
		{name: "is there, and may be left from another volume", serial: number, wwid: own, there: number, thereWWID: own},
		{name: "is there and used, perhaps by another volume", serial: number, wwid: own, there: number, thereWWID: own, used: true,
			is: attach.ErrNotOurs, text: "in use"},
		{name: "another was there", serial: number, wwid: own, there: "99", thereWWID: "t10.SCST_BIO99-x"},
		{name: "another was there and is used", serial: number, wwid: own, there: "99", thereWWID: "t10.SCST_BIO99-x", used: true,
			known: own, is: attach.ErrNotOurs, text: "in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, s := withSession(t)
			if tt.there != "" {
				m.names[5] = tt.thereWWID
				m.disk(1, 1, 5, tt.there)
			}
			if tt.used {
				m.file("", m.diskDir(1, 5), "block/sd5/holders/dm-1")
			}
			m.array[5], m.names[5] = tt.serial, tt.wwid
			d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1", WWID: tt.known})
			if !errors.Is(err, tt.is) || err == nil && (d.Serial != tt.serial || d.WWID != tt.wwid) {
				t.Errorf("%+v, %v, want %v", d, err, tt.is)
			}
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v does not say %q", err, tt.text)
			}
			if err != nil && tt.there == "" && exists(m.path(m.diskDir(1, 5))) {
				t.Error("the disk is left")
			}
		})
	}
}

// TestScanFindsTheDiskTwice: the disk that is found is in use at another LUN.
func TestScanFindsTheDiskTwice(t *testing.T) {
	m, s := withSession(t)
	const own = "t10.SCST_BIO3f1c2a8c-vol12"
	m.names[4], m.names[5] = own, own
	m.disk(1, 1, 4, "3f")
	m.file("", m.diskDir(1, 4), "block/sd4/holders/dm-1")
	m.array[5] = "3f"
	if d, err := m.i.Scan(t.Context(), s.Target, 5, Wanted{ID: "volume-1"}); !errors.Is(err, volume.ErrBusy) {
		t.Errorf("%+v, %v", d, err)
	}
	if exists(m.path(m.diskDir(1, 5))) || !exists(m.path(m.diskDir(1, 4))) {
		t.Error("the wrong disk is left")
	}
}

func TestParseName(t *testing.T) {
	descriptor := func(text, kind byte, name string) string {
		return string([]byte{text, kind, 0, byte(len(name))}) + name
	}
	page := func(descriptors ...string) string {
		all := strings.Join(descriptors, "")
		return "\x00\x83" + string([]byte{byte(len(all) >> 8), byte(len(all))}) + all
	}
	naa, eui := descriptor(1, 3, "\x60\x01\x40\x5e"), descriptor(1, 2, "\x00\x11")
	t10, port := descriptor(2, 1, "SCST_BIO2a-x  \x00"), descriptor(1, 0x13, "\x50\x01")
	for text, want := range map[string]string{
		page(t10, naa, eui):                "naa.6001405e",
		page(t10, eui):                     "eui.0011",
		page(port, t10):                    "t10.SCST_BIO2a-x",
		page(descriptor(3, 8, "iqn.x:1")):  "name.iqn.x:1",
		page(descriptor(2, 1, "a\x01")):    "t10.6101",
		page(port):                         "",
		page():                             "",
		page(descriptor(1, 3, "")):         "",
		page(t10)[:12]:                     "",
		page(naa) + "trailing":             "naa.6001405e",
		page(naa, t10)[:len(page(naa))+3]:  "naa.6001405e",
		"\x00\x80\x00\x04abcd":             "",
		"\x00\x83\xff":                     "",
		"\x00\x83\xff\xff\x01\x03\x00\xff": "",
		"":                                 "",
		page(descriptor(2, 0, "the vendor's own"), port): "",
	} {
		if got, err := parseName([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add([]byte(namePage83("SCST_BIO2a-x")))
	f.Fuzz(func(t *testing.T, page []byte) {
		name, err := parseName(page)
		if (err == nil) != (name != "") || len(name) > 2*pageSize+len("name.") {
			t.Errorf("%q, %v", name, err)
		}
		if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q is not printable", name)
		}
	})
}
