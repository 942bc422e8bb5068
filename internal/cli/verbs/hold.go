package verbs

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

// PinOptions are the flags of pin.
type PinOptions struct{ length, reason string }

// Define adds the flags.
func (o *PinOptions) Define(flags *pflag.FlagSet) {
	flags.StringVar(&o.length, "for", "", "how long from now: 90m, 48h, 3d")
	flags.StringVar(&o.reason, "reason", "", "why, for others who find the volume still there")
}

// Check returns until when the volume is kept, and why.
func (o *PinOptions) Check(now time.Time) (until time.Time, reason string, err error) {
	switch {
	case o.length == "":
		return until, "", WrongUsage("--for is missing: how long the volume is to be kept from now, as in --for 48h")
	case strings.TrimSpace(o.reason) == "":
		return until, "", WrongUsage("--reason is missing: say why the volume is to be kept, for others who find it still there")
	}
	d, err := duration.Parse(o.length)
	if err != nil || d <= 0 {
		return until, "", WrongUsage("--for %s is not a duration; write it as 90m, 48h or 3d", Quoted(o.length))
	}
	// The end of a second, so that what is shown is not a second less than what was asked for.
	return now.Add(d).Add(time.Second - 1).Truncate(time.Second), o.reason, CheckReason(o.reason)
}

// CheckReason refuses a reason that no volume can have.
func CheckReason(text string) error {
	switch {
	case len(text) > volume.MaxHoldWhy:
		return WrongUsage("--reason has %d bytes, and may have %d", len(text), volume.MaxHoldWhy)
	case !terminal.IsPlain(text):
		return WrongUsage("--reason has characters that cannot be shown, such as line breaks: leave them out")
	}
	return nil
}

// DefineReason adds --reason to a verb that does not need one.
func DefineReason(flags *pflag.FlagSet) *string {
	return flags.String("reason", "", "why, for the log and for those who look for the volume later")
}

// HoldNote is what a hold adds to when a volume expires; kind is empty if there is none.
func HoldNote(kind string) string {
	if kind == "" {
		return ""
	}
	return " (" + strings.ToLower(kind) + ")"
}

// HoldInFull says what a person has decided about a volume.
func HoldInFull(now time.Time, kind string, until time.Time, by, why string) string {
	text := strings.ToLower(kind) + " until " + Moment(until) + " (" + terminal.In(now, until) + ")"
	return text + ByWhom(by, why)
}

// ByWhom is who wanted something, and why, where that is known: " by alice: post-mortem".
func ByWhom(by, why string) string {
	text := ""
	if by != "" {
		text = " by " + by
	}
	if why != "" {
		text += ": " + why
	}
	return text
}

// mostWhy is how many characters of why a volume is gone a table shows.
const mostWhy = 120

// WhyGone says why a volume is gone, and who wanted that, in a cell of a table: a long reason is cut. The archive keeps a copy
// until archived, or has none if that is zero or over.
func WhyGone(now time.Time, reason, by, why string, archived time.Time) string {
	text := volume.ReasonInWords(reason) + ByWhom(by, why)
	if runes := []rune(text); len(runes) > mostWhy {
		text = string(runes[:mostWhy]) + "..."
	}
	if archived.After(now) {
		text += "; archived until " + Moment(archived)
	}
	return text
}

// Lately is how long ago a volume may have gone early for which [HintGone] stands behind an empty list.
const Lately = 24 * time.Hour

// HintGone says behind an empty list of volumes that there were some.
const HintGone = "; some went early in the last 24 hours, to make room: --gone lists them"

// TermsInFull are the rows that say what a volume was promised.
func TermsInFull(lifespan, succeeded, retain string, bytes, inodes int64, notEnforced bool) (rows [][]string) {
	holds := ""
	if notEnforced {
		holds = ", not enforced"
	}
	if lifespan != "" {
		text := lifespan
		if succeeded != "" && succeeded != lifespan {
			text += ", " + succeeded + " if the pod succeeded"
		}
		if retain != "" && retain != volume.RetainAlways.String() {
			text += ", retain " + retain
		}
		rows = append(rows, []string{"Lifespan:", text})
	}
	if bytes > 0 {
		rows = append(rows, []string{"Size limit:", SizeInFull(bytes) + holds})
	}
	if inodes > 0 {
		rows = append(rows, []string{"Inode limit:", fmt.Sprint(inodes) + holds})
	}
	return rows
}
