package unpack

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// CheckName returns an error if no file of this system can have a name, which is one element of a path.
func CheckName(name string) error {
	_, err := host.check([]string{name})
	return err
}

// windowsRules are those of Windows, for all of its file systems.
var windowsRules = rules{name: windowsName, target: windowsTarget, shortNames: true, noModes: true}

// macRules are those of macOS, for all of its file systems.
var macRules = rules{name: macName}

const notText = "its name is not UTF-8 text"

// macName returns why no file of macOS can have a name.
func macName(name string) (why string) {
	if !utf8.ValidString(name) {
		return notText
	}
	return ""
}

// windowsName returns why no file of Windows can have a name, or why Windows would take it for another
// one: "a:b" is a stream of the file "a", "a." is "a", and "NUL.txt" is a device.
func windowsName(name string) (why string) {
	if !utf8.ValidString(name) {
		return notText
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(`<>:"/\|?*`, r) }); i >= 0 {
		return fmt.Sprintf("Windows has no names with %q", name[i:i+1])
	}
	if last := name[len(name)-1:]; last == "." || last == " " {
		return fmt.Sprintf("Windows has no names that end with %q", last)
	}
	if device := windowsDevice(name); device != "" {
		return fmt.Sprintf("Windows keeps the name %s for a device", device)
	}
	return ""
}

// windowsDevice returns the device that Windows takes a name for; empty if it takes it for none.
func windowsDevice(name string) string {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"}, base) {
		return base
	}
	for _, port := range []string{"COM", "LPT"} {
		// The digits in superscript are those of ISO 8859-1.
		if number, ok := strings.CutPrefix(base, port); ok && utf8.RuneCountInString(number) == 1 &&
			strings.ContainsAny(number, "0123456789\u00b9\u00b2\u00b3") {
			return base
		}
	}
	return ""
}

// windowsTarget returns why no symbolic link of Windows can have a target. An absolute one means nothing
// there, and one that begins with two slashes would be another machine.
func windowsTarget(target string) (why string) {
	if target == "" || strings.HasPrefix(target, "/") {
		return "Windows has no such path"
	}
	for element := range strings.SplitSeq(target, "/") {
		if element == "" || element == "." || element == ".." {
			continue
		}
		if why := windowsName(element); why != "" {
			return why
		}
	}
	return ""
}

// isShortName reports whether a name has the form of those that Windows gives to a file beside its own:
// LONGNA~1.TXT.
func isShortName(name string) bool {
	base, extension, _ := strings.Cut(name, ".")
	_, number, ok := strings.Cut(base, "~")
	return ok && number != "" && strings.Trim(number, "0123456789") == "" && len([]rune(base)) <= 8 && len([]rune(extension)) <= 3
}

// fold returns what names have in common that some system takes for one: case, how characters are
// composed, and characters that are not seen. It may also be the same for names that no system does.
func fold(name string) string {
	folded := strings.Builder{}
	for _, r := range norm.NFKD.String(name) {
		switch {
		case unicode.Is(unicode.Cf, r):
		case r == '\u00df', r == '\u1e9e': // the sharp s
			folded.WriteString("SS")
		default:
			least := r
			for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
				least = min(least, other)
			}
			folded.WriteRune(least)
		}
	}
	return norm.NFKD.String(folded.String())
}
