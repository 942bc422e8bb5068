package policy

import (
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// Attribute is one that a pod may set in the volumeAttributes of its volume. The same table checks
// requests here and, as an admission policy, objects in the API server.
type Attribute struct {
	// Key is its name, exactly so.
	Key string
	// Form is a regular expression that the whole value matches, in at most [MaxValue] characters.
	Form string
	// CEL says what else has to be true of a value that has the Form, in the language of admission
	// policies, which calls it value. Empty is nothing else.
	CEL string
	// Means completes the sentence "it has to be".
	Means string

	form *regexp.Regexp
	// read takes over a value that has the form. It reports whether CEL is true of it.
	read func(to *asked, value string) bool
}

// MaxValue is how long a value may be, in characters. That of attach may have [MaxAttach].
const (
	MaxValue  = 64
	MaxAttach = 320
)

// Of the inodes that can be asked for: less is no use to a pod, and more is taken for a slip of the hand. Both are
// quantities.
const leastInodes, mostInodes = "2", "1T"

const (
	// Where there are days, weeks or years, all numbers are whole ones.
	durationCEL = `(value.matches('` + duration.Long + `') ? value.matches('[1-9]') : duration(value) > duration('0s'))`
	durationIs  = "a duration longer than 0, such as 90m, 36h or 4d"
	// A pod's UID is a plain path element; the name of a volume is a label of DNS.
	attachForm = `^[A-Za-z0-9][-A-Za-z0-9._]{0,252}/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
)

// Attributes are all that there are, sorted by key.
var Attributes = []*Attribute{
	{
		Key: api.KeyArchive, Form: `^(Always|OnFailure|Never)$`, Means: "Always, OnFailure or Never",
		read: func(to *asked, value string) bool {
			archive, ok := volume.ParseArchive(value)
			to.archive = &archive
			return ok
		},
	},
	{
		Key: api.KeyAttach, Form: attachForm, Means: "POD-UID/VOLUME: the UID of a pod and the name of a volume in its spec",
		read: func(to *asked, value string) bool { to.attach = value; return true },
	},
	{
		Key: api.KeyConverted, Form: `^` + api.Converted + `$`,
		Means: api.Converted + ": the policy that makes a Katbox volume of an emptyDir sets it",
		read:  func(to *asked, _ string) bool { to.converted = true; return true },
	},
	{
		Key: "inodeLimit", Form: api.QuantityForm, CEL: quantityCEL(leastInodes, mostInodes),
		Means: "a quantity from " + leastInodes + " to " + mostInodes + ", such as 100k",
		read: func(to *asked, value string) bool {
			return readQuantity(&to.limit.Inodes, value, leastInodes, mostInodes)
		},
	},
	{
		Key: "lifespan", Form: duration.Form, CEL: durationCEL, Means: durationIs,
		read: func(to *asked, value string) bool { return readDuration(&to.lifespan, value) },
	},
	{
		Key: "lifespanSucceeded", Form: duration.Form, CEL: durationCEL, Means: durationIs,
		read: func(to *asked, value string) bool { return readDuration(&to.lifespanSucceeded, value) },
	},
	{
		Key: api.KeyLogs, Form: `^(true|false)$`, Means: "true or false",
		read: func(to *asked, value string) bool { to.noLogs = value == "false"; return true },
	},
	{
		Key: "mode", Form: `^(0?([1-7][0-7]{2}|0[1-7][0-7]|00[1-7])|1[0-7]{3})$`,
		Means: "permissions in octal digits, without setuid and setgid, such as 0770 or 1777",
		read: func(to *asked, value string) bool {
			mode, err := strconv.ParseUint(value, 8, 32)
			to.mode = uint32(mode)
			return err == nil
		},
	},
	{
		Key: api.KeyRetain, Form: `^(Always|OnFailure|Never)$`, Means: "Always, OnFailure or Never",
		read: func(to *asked, value string) bool {
			retain, ok := parseRetain(value)
			to.retain = &retain
			return ok
		},
	},
	{
		Key: "sizeLimit", Form: api.QuantityForm, CEL: quantityCEL(api.LeastBytes, api.MostBytes),
		Means: "a quantity from " + api.LeastBytes + " to " + api.MostBytes + ", such as 10Gi",
		read: func(to *asked, value string) bool {
			return readQuantity(&to.limit.Bytes, value, api.LeastBytes, api.MostBytes)
		},
	},
}

func init() {
	for _, a := range Attributes {
		a.form = regexp.MustCompile(a.Form)
	}
}

// MaxLength is how long a value of the attribute may be, in characters.
func (a *Attribute) MaxLength() int {
	if a.Key == api.KeyAttach {
		return MaxAttach
	}
	return MaxValue
}

// quantityCEL is the condition that readQuantity checks.
func quantityCEL(least, most string) string {
	return "quantity(value).compareTo(quantity('" + least + "')) >= 0 && quantity(value).compareTo(quantity('" + most + "')) <= 0"
}

func readDuration(to *time.Duration, value string) bool {
	d, err := duration.Parse(value)
	*to = d
	return err == nil && d > 0
}

// readQuantity rounds a fraction up.
func readQuantity(to *int64, value, least, most string) bool {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Cmp(resource.MustParse(least)) < 0 || q.Cmp(resource.MustParse(most)) > 0 {
		return false
	}
	*to = q.Value()
	return true
}

func parseRetain(word string) (volume.Retain, bool) {
	for r := volume.RetainAlways; r <= volume.RetainNever; r++ {
		if r.String() == word {
			return r, true
		}
	}
	return 0, false
}
