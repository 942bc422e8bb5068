package hostile

import "strings"

// Names are names of files that are hard to show, to quote and to encode.
var Names = []string{
	strings.Repeat("n", 255), strings.Repeat("\xff", 254), "new\nline", "\xff\xfe", "-rf *", "...", ". ", " ", ".. ",
	"\x7f\x1b[2J", "\x1b]0;title\x07", "\\", "100%", "%2e%2e", "%2F", "a;b", "a&b=c+d?#", `"quoted"`, "'quoted'", "`id`", "$(id)",
	"<img src=x onerror=alert(1)>", "tab\there", "carriage\rreturn", "\u202egnp.exe",
	"\u0645\u0644\u0641", "e\u0301", "\u00e9", "\U0001f431", "a\xffb",
	"\x01", "CON", "a", "A", "..a", "~", "-", "\ufeff",
}
