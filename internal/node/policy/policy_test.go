package policy

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	hour = time.Hour
	gi   = int64(1) << 30
)

func flags() Bounds { return Bounds{Lifespan: 12 * hour, MaxLifespan: 24 * hour} }

func mustNew(t testing.TB, b Bounds) *Policy {
	t.Helper()
	p, err := New(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTerms(t *testing.T) {
	bounded := flags()
	bounded.LifespanSucceeded, bounded.MaxLimit = hour, volume.Size{Bytes: 10 * gi, Inodes: 1000}
	defaults := volume.Terms{Lifespan: 12 * hour, LifespanSucceeded: 12 * hour}
	with := func(change func(*volume.Terms)) volume.Terms {
		terms := defaults
		change(&terms)
		return terms
	}
	for name, tt := range map[string]struct {
		bounds     Bounds
		attributes map[string]string
		want       volume.Terms
	}{
		"none":          {flags(), nil, defaults},
		"the kubelet's": {flags(), map[string]string{"csi.storage.k8s.io/anything-new": "\x00", "csi.storage.k8s.io/": ""}, defaults},
		"shorter": {flags(), map[string]string{"lifespan": "90m"},
			volume.Terms{Lifespan: 90 * time.Minute, LifespanSucceeded: 90 * time.Minute}},
		"longer than default": {flags(), map[string]string{"lifespan": "20h"},
			volume.Terms{Lifespan: 20 * hour, LifespanSucceeded: 20 * hour}},
		"rounded up": {flags(), map[string]string{"lifespan": "1ns"},
			volume.Terms{Lifespan: time.Minute, LifespanSucceeded: time.Minute}},
		"twice the same unit": {flags(), map[string]string{"lifespan": "1h1h"},
			volume.Terms{Lifespan: 2 * hour, LifespanSucceeded: 2 * hour}},
		"clamped": {flags(), map[string]string{"lifespan": "999999h"},
			volume.Terms{Lifespan: 24 * hour, LifespanSucceeded: 24 * hour}},
		"in days": {flags(), map[string]string{"lifespan": "0w0d20h"},
			volume.Terms{Lifespan: 20 * hour, LifespanSucceeded: 20 * hour}},
		"a day": {flags(), map[string]string{"lifespan": "1d"}, volume.Terms{Lifespan: 24 * hour, LifespanSucceeded: 24 * hour}},
		"shorter on success": {flags(), map[string]string{"lifespanSucceeded": "1h"},
			volume.Terms{Lifespan: 12 * hour, LifespanSucceeded: hour}},
		"longer on success": {flags(), map[string]string{"lifespan": "2h", "lifespanSucceeded": "9h"},
			volume.Terms{Lifespan: 2 * hour, LifespanSucceeded: 2 * hour}},
		"retain": {flags(), map[string]string{"retain": "OnFailure"},
			with(func(t *volume.Terms) { t.Retain = volume.RetainOnFailure })},
		"mode": {flags(), map[string]string{"mode": "1777"}, with(func(t *volume.Terms) { t.Mode = 0o1777 })},
		"limits": {flags(), map[string]string{"sizeLimit": "1.5Gi", "inodeLimit": "1e4"},
			with(func(t *volume.Terms) { t.Limit = volume.Size{Bytes: 3 * gi / 2, Inodes: 10000} })},
		"bounds without a say": {bounded, nil, volume.Terms{Lifespan: 12 * hour, LifespanSucceeded: hour, Limit: bounded.MaxLimit}},
		"bounds with one": {bounded, map[string]string{"sizeLimit": "1Gi", "lifespan": "30m"},
			volume.Terms{Lifespan: 30 * time.Minute, LifespanSucceeded: 30 * time.Minute, Limit: volume.Size{Bytes: gi, Inodes: 1000}}},
	} {
		got, err := mustNew(t, tt.bounds).Terms("default", tt.attributes)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, tt.want)
		}
	}
}

// TestNoLogs: a pod or its namespace wants none, and neither brings back what the other refuses.
func TestNoLogs(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		p, err := New(Bounds{Lifespan: time.Hour, MaxLifespan: time.Hour, NoLogs: forbidden})
		if err != nil {
			t.Fatal(err)
		}
		for value, refused := range map[string]bool{"": false, "true": false, "false": true} {
			attributes := map[string]string{}
			if value != "" {
				attributes["logs"] = value
			}
			terms, err := p.Terms("default", attributes)
			if want := refused || forbidden; err != nil || terms.NoLogs != want {
				t.Errorf("forbidden %t, logs %q: %t, %v, want %t", forbidden, value, terms.NoLogs, err, want)
			}
		}
	}
}

// TestConvertedIsCut: what a policy has made of an emptyDir is cut to the bounds that refuse the same from a person. What is
// malformed is refused from both, as a person wrote that too.
func TestConvertedIsCut(t *testing.T) {
	bounds := flags()
	bounds.MaxLimit = volume.Size{Bytes: 10 * gi, Inodes: 1000}
	bounds.Retain = []volume.Retain{volume.RetainOnFailure, volume.RetainAlways}
	p := mustNew(t, bounds)
	all := volume.Terms{Lifespan: 12 * hour, LifespanSucceeded: 12 * hour, Limit: bounds.MaxLimit, Retain: volume.RetainOnFailure}
	for _, tt := range []struct {
		key, value, cut string
		want            volume.Terms
	}{
		{"sizeLimit", "11Gi", "sizeLimit from 11Gi to 10Gi", all},
		{"inodeLimit", "1001", "inodeLimit from 1001 to 1000", all},
		{"retain", "Never", "retain from Never to OnFailure", all},
		{"lifespan", "3d", "lifespan from 3d to 1d", volume.Terms{Lifespan: 24 * hour, LifespanSucceeded: 24 * hour, Limit: all.Limit,
			Retain: all.Retain}},
		{"sizeLimit", "1Gi", "", volume.Terms{Lifespan: 12 * hour, LifespanSucceeded: 12 * hour,
			Limit: volume.Size{Bytes: gi, Inodes: 1000}, Retain: all.Retain}},
		{"retain", "Always", "", volume.Terms{Lifespan: 12 * hour, LifespanSucceeded: 12 * hour, Limit: all.Limit}},
	} {
		attributes := map[string]string{"converted": "true", tt.key: tt.value}
		if got, err := p.Terms("ns", attributes); err != nil || got != tt.want {
			t.Errorf("%s %s: %+v, %v, want %+v", tt.key, tt.value, got, err, tt.want)
		}
		if got := p.Cut("ns", attributes); got != tt.cut {
			t.Errorf("%s %s: cut is %q, want %q", tt.key, tt.value, got, tt.cut)
		}
	}
	for _, attributes := range []map[string]string{
		{"converted": "true", "lifespan": "soon"}, {"converted": "true", "sizeLimit": "1"}, {"converted": "yes"},
		{"converted": "true", "attach": "uid/scratch"}, {"converted": ""}, {"converted": "false", "sizeLimit": "11Gi"},
	} {
		if terms, err := p.Terms("ns", attributes); err == nil {
			t.Errorf("%v: %+v", attributes, terms)
		}
	}
}

// TestNoAttach: where it is forbidden no pod attaches a volume, and all else goes on.
func TestNoAttach(t *testing.T) {
	bounds := flags()
	bounds.NoAttach = true
	p := mustNew(t, bounds)
	_, err := p.Terms("default", map[string]string{"attach": "uid/scratch"})
	if err == nil || !strings.Contains(err.Error(), "is not allowed in this namespace") {
		t.Fatalf("error %v", err)
	}
	checkRefusal(t, "attach", err)
	if _, err := p.Terms("default", map[string]string{"lifespan": "1h"}); err != nil {
		t.Error(err)
	}
}

func TestTermsAreRefused(t *testing.T) {
	bounds := flags()
	bounds.MaxLimit = volume.Size{Bytes: 10 * gi, Inodes: 1000}
	bounds.Retain = []volume.Retain{volume.RetainAlways, volume.RetainOnFailure}
	p := mustNew(t, bounds)
	long := strings.Repeat("1h", 1<<19)
	for _, tt := range []struct{ key, value, want string }{
		{"Lifespan", "1h", "did you mean lifespan?"},
		{"lifespam", "1h", "did you mean lifespan?"},
		{"lifespan-succeeded", "1h", "did you mean lifespanSucceeded?"},
		{"size", "1Gi", "did you mean sizeLimit?"},
		{"colour", "red",
			"is not known; there are archive, attach, converted, inodeLimit, lifespan, lifespanSucceeded, logs, mode, retain, sizeLimit"},
		{"", "", "is not known"},
		{"CSI.storage.k8s.io/ephemeral", "true", "is not known"},
		{"a\n\x1b[31m", "x", `volumeAttributes["a\n\x1b[31m"] is not known`},
		{strings.Repeat("k", 1<<20), "x", `kkk..."] is not known`},
		{"lifespan", "", "a duration longer than 0, such as 90m, 36h or 4d"},
		{"lifespan", "0", "a duration longer than 0"},
		{"lifespan", "0h", "a duration longer than 0"},
		{"lifespan", "-1h", "a duration longer than 0"},
		{"lifespan", "9999999h", "a duration longer than 0"}, // 292 years are the most
		{"lifespan", "0d", "a duration longer than 0"},
		{"lifespan", "1.5d", "a duration longer than 0"},
		{"lifespan", "1d1d", "a duration longer than 0"},
		{"lifespan", "293y", "a duration longer than 0"},
		{"lifespan", "١h", `is "١h"`},
		{"lifespan", " 1h", `is " 1h"`},
		{"lifespan", "1H", "a duration longer than 0"},
		{"lifespan", "1h\n", `is "1h\n"`},
		{"lifespan", "1h\u202e", `is "1h\u202e"`},
		{"lifespan", long, "is longer than 64 characters"},
		{"lifespanSucceeded", "soon", "a duration longer than 0"},
		{"retain", "always", "Always, OnFailure or Never"},
		{"retain", "Never", "is Never, but in this namespace it has to be Always or OnFailure"},
		{"sizeLimit", "1e30", "a quantity from 64Ki to 1Ei"},
		{"sizeLimit", "-1", "a quantity"},
		{"sizeLimit", "0", "a quantity"},
		{"sizeLimit", "0.1", "a quantity"},
		{"sizeLimit", "100m", "a quantity"},
		{"sizeLimit", "1Gi ", `is "1Gi "`},
		{"sizeLimit", "11Gi", "is 11Gi, but in this namespace it is at most 10Gi"},
		{"inodeLimit", "1", "a quantity from 2 to 1T"},
		{"inodeLimit", "1001", "is 1001, but in this namespace it is at most 1000"},
		{"mode", "4777", "permissions in octal digits"},
		{"mode", "0o777", "permissions in octal digits"},
		{"mode", "8", "permissions in octal digits"},
		{"mode", "", "permissions in octal digits"},
		{"mode", "0000", "permissions in octal digits"},
		{"logs", "False", "true or false"},
		{"logs", "", "true or false"},
		{"attach", "scratch", "POD-UID/VOLUME"},
		{"attach", "../uid/scratch", "POD-UID/VOLUME"},
		{"attach", "uid/" + strings.Repeat("v", 64), "POD-UID/VOLUME"},
		{"attach", strings.Repeat("u", 300) + "/scratch", "POD-UID/VOLUME"},
		{"attach", strings.Repeat("u", 400) + "/scratch", "is longer than 320 characters"},
	} {
		terms, err := p.Terms("default", map[string]string{tt.key: tt.value})
		if err == nil || !strings.Contains(err.Error(), tt.want) || terms != (volume.Terms{}) {
			t.Errorf("%.40q %.40q: %+v, %v, want an error with %q", tt.key, tt.value, terms, err, tt.want)
			continue
		}
		checkRefusal(t, tt.key, err)
	}
}

// checkRefusal: the error names the key, and is one short plain line.
func checkRefusal(t *testing.T, key string, err error) {
	t.Helper()
	var invalid *volume.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != Field(key) {
		t.Fatalf("%.40q: %v is not an error of that field", key, err)
	}
	if text := err.Error(); len(text) > 1600 || strings.ContainsFunc(text, unicode.IsControl) ||
		strings.ContainsRune(text, unicode.ReplacementChar) {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// FuzzTerms looks for attributes with which terms are outside of the bounds, or an error is more than
// one plain line.
func FuzzTerms(f *testing.F) {
	for _, value := range []string{"0", "-1h", "1ns", "9999999h", "1h1h", "١h", " 1h", "1H", "1e30", "-1",
		"0.1", "1Gi ", "4777", "0o777", "8", "", "OnFailure"} {
		for _, a := range Attributes {
			f.Add(a.Key, value, "lifespan", "30m")
		}
	}
	f.Add("csi.storage.k8s.io/pod.uid", "x", "Lifespan", "1h")
	bounds := flags()
	bounds.MaxLimit, bounds.Retain = volume.Size{Bytes: gi, Inodes: 1000}, []volume.Retain{volume.RetainAlways}
	p := mustNew(f, bounds)
	f.Fuzz(func(t *testing.T, key, value, other, second string) {
		asked := map[string]string{key: value, other: second}
		terms, err := p.Terms("default", asked)
		if err != nil {
			var invalid *volume.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatal(err)
			}
			for key := range asked {
				if invalid.Field == Field(key) {
					checkRefusal(t, key, err)
					return
				}
			}
			// What is said of the default is said of the attribute that is missing.
			t.Fatalf("%v names none of %q", err, asked)
		}
		if err := terms.Check(); err != nil || terms.Lifespan <= 0 || terms.Lifespan > bounds.MaxLifespan || terms.LifespanSucceeded <= 0 ||
			terms.Limit.Bytes <= 0 || terms.Limit.Bytes > gi || terms.Limit.Inodes <= 0 || terms.Limit.Inodes > 1000 ||
			terms.Retain != volume.RetainAlways {
			t.Errorf("%q: %+v (%v)", asked, terms, err)
		}
		for key := range asked {
			if !strings.HasPrefix(key, KubeletPrefix) && !strings.Contains(" "+strings.Join(Keys(), " ")+" ", " "+key+" ") {
				t.Errorf("%q is accepted", key)
			}
		}
	})
}

// TestFewLifespans: however many pods ask for, few are left, so that the next one to go is found fast.
func TestFewLifespans(t *testing.T) {
	p := mustNew(t, Bounds{Lifespan: hour, MaxLifespan: 365 * 24 * hour})
	different := map[time.Duration]bool{}
	for i := range 10_000 {
		d := time.Duration(i+1) * (7 * 24 * hour / 10_000)
		terms, err := p.Terms("ci", map[string]string{"lifespan": d.String()})
		if err != nil || terms.Lifespan < d || terms.Lifespan > d+d/10+time.Minute {
			t.Fatalf("%v became %v (%v)", d, terms.Lifespan, err)
		}
		different[terms.Lifespan] = true
	}
	if len(different) > 300 {
		t.Errorf("%d different lifespans", len(different))
	}
}

func TestAttach(t *testing.T) {
	p := mustNew(t, flags())
	asked := map[string]string{"attach": "uid-1/scratch"}
	if terms, err := p.Terms("ci", asked); err != nil {
		t.Errorf("%+v, %v", terms, err)
	}
	want := volume.Place{Pod: "uid-1", ID: volume.KubeletID("uid-1", "scratch")}
	if got, err := Attach(asked, true); got != want || err != nil {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	if got, err := Attach(asked, false); got != (volume.Place{}) || err == nil || !strings.Contains(err.Error(), "readOnly: true") {
		t.Errorf("not read-only: %+v, %v", got, err)
	}
	if got, err := Attach(nil, false); got != (volume.Place{}) || err != nil {
		t.Errorf("no attribute: %+v, %v", got, err)
	}
	asked["mode"] = "0700"
	if _, err := p.Terms("ci", asked); err == nil || !strings.Contains(err.Error(), `volumeAttributes["mode"] means nothing beside attach`) {
		t.Errorf("beside mode: %v", err)
	}
}

// TestCut: a lifespan that is shorter than what a pod asks for does not go without a word; one that is rounded up does.
func TestCut(t *testing.T) {
	for name, tt := range map[string]struct {
		attributes map[string]string
		want       string
	}{
		"nothing asked":        {nil, ""},
		"within the bound":     {map[string]string{"lifespan": "24h"}, ""},
		"rounded up":           {map[string]string{"lifespan": "1ns"}, ""},
		"longer":               {map[string]string{"lifespan": "3d"}, "lifespan from 3d to 1d"},
		"longer after success": {map[string]string{"lifespanSucceeded": "20h"}, "lifespanSucceeded from 20h to 12h"},
		"both": {map[string]string{"lifespan": "3d", "lifespanSucceeded": "2d"},
			"lifespan from 3d to 1d, lifespanSucceeded from 2d to 1d"},
		"refused for its format": {map[string]string{"lifespan": "3d", "sizeLimit": "x"}, ""},
	} {
		if got := mustNew(t, flags()).Cut("ns", tt.attributes); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
