package page

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/katbox/katbox/internal/model/volume"
)

// holeSize is how many bytes without data are before the text of holed.log: what is left of a log that was
// truncated while its writer went on.
const holeSize = 8 << 30

// longFile is as long as a name may be.
var longFile = "checkpoint-" + strings.Repeat("of-a-model-with-a-long-name-", 8) + "final.log"

const longDir = "runs/2026-11-22T02-00-04/node-0/rank-0"

var longPath = longDir + "/" + longFile

// fileSite is a cluster with the volume of a pod that failed and that of one that succeeded. Both have the
// same files, of each kind that the page has to tell apart.
type fileSite struct {
	*site
	*plugin
	v *visitor
	// failed and succeeded are the names of the volumes.
	failed, succeeded string
}

func openFiles(t testing.TB) *fileSite {
	t.Helper()
	s := &fileSite{}
	s.site = newSite(t, map[string]func(*node){"n1": func(n *node) {
		for name, outcome := range map[*string]volume.Outcome{&s.failed: volume.Failed, &s.succeeded: volume.Succeeded} {
			var path string
			*name, path = n.put(func(d *volume.Description) {
				d.Record.PodName, d.Record.Outcome = "train-bert-29371080-x7k2p", outcome
				owned(d, "Job", "train-bert-29371080")
				aged(d, 0.7, 12, 1288490188, 31)
			})
			writeFiles(t, path)
		}
	}})
	s.plugin = startPlugin(t, s.kubeconfig("token-of-alice", ""))
	s.v = newVisitor(t)
	s.enter(s.v)
	return s
}

// in returns the address of a file of a volume.
func in(volume, file string) string { return "#/ci/" + volume + "/" + file }

// writeFiles writes one file of each kind.
func writeFiles(t testing.TB, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(path, longDir), 0o755))
	for name, content := range map[string]string{
		"train.log":    trainLog(900),
		"notes.txt":    trainLog(900),
		"colors.log":   colorsLog(),
		"progress.log": progressLog(),
		"latin1.txt":   "Die M\xfcller\xf6ffnung: 20 \x80 f\xfcr Stra\xdfe 7\nZweite Zeile\n",
		"utf16.txt":    utf16Text("\ufeffServer gestartet: Größe 20 €\r\nZweite Zeile\r\n"),
		"nuls.log":     strings.Repeat("\x00", 3000) + "2026-11-22T02:00:04Z after the log was truncated\n2026-11-22T02:00:05Z second line\n",
		"data.bin":     "\x00\x01\x02ORDER\xff\xfe" + strings.Repeat("\x10\x20", 900),
		longFile:       "a line\n",
		longPath:       "a line\n",
	} {
		must(t, os.WriteFile(filepath.Join(path, name), []byte(content), 0o644))
	}
	holed, err := os.Create(filepath.Join(path, "holed.log"))
	must(t, err)
	_, err = holed.WriteAt([]byte("2026-11-22T02:00:04Z first line behind the hole\n2026-11-22T02:00:05Z last line\n"), holeSize)
	must(t, err, holed.Close())
}

func trainLog(lines int) string {
	var log strings.Builder
	began := time.Date(2026, 11, 22, 2, 0, 4, 0, time.UTC)
	for i := 1; i <= lines; i++ {
		fmt.Fprintf(&log, "%s INFO  train: step %d of 1000, loss %.4f\n", began.Add(time.Duration(i)*1370*time.Millisecond).Format(time.RFC3339),
			i, 4/float64(i))
	}
	return log.String() + "2026-11-22T02:21:00Z ERROR train: out of memory, giving up\n"
}

// colorsLog has colors that go over ends of lines, backgrounds, and all pairs of the two.
func colorsLog() string {
	var log strings.Builder
	log.WriteString("$ pytest -q\n\x1b[31mFAILED test_ledger.py::test_total\n  assert 118.40 == 118.04\n" +
		"  of order 81723\x1b[0m\nplain again\n\x1b[37;41m ERROR \x1b[0m the ledger differs   \x1b[30;42m PASS \x1b[0m" +
		" 4095 orders   \x1b[7m inverse \x1b[0m   \x1b[48;5;19;38;5;226m 256 \x1b[0m\n")
	for background := range 8 {
		for color := range 8 {
			fmt.Fprintf(&log, "\x1b[%d;%dm %d on %d \x1b[0m", 30+color, 40+background, color, background)
		}
		log.WriteString("\n")
	}
	return log.String()
}

// progressLog is what a download and a training leave: one line that was written over again and again.
func progressLog() string {
	var log strings.Builder
	log.WriteString("Downloading model.safetensors\n")
	for i := range 2001 {
		fmt.Fprintf(&log, "\r%3d%%|%-40s| %d/2000 [00:%02d]", i/20, strings.Repeat("█", i/50), i, i/34)
	}
	log.WriteString("\nDownloaded\nabcdef\rxyz\nlong text\r\x1b[Kshort\nkept\r\n")
	return log.String()
}

func utf16Text(text string) string {
	var out strings.Builder
	for _, r := range text {
		out.WriteByte(byte(r))
		out.WriteByte(byte(r >> 8))
	}
	return out.String()
}

// fileLooks are the widths of a phone, a tablet and a desk, in both themes.
var fileLooks = []struct {
	name   string
	width  int64
	scheme string
}{
	{"390-light", 390, "light"}, {"390-dark", 390, "dark"}, {"820-light", 820, "light"}, {"820-dark", 820, "dark"},
	{"1280-light", 1280, "light"}, {"1280-dark", 1280, "dark"},
}

// TestEncodings: what a text is in is told by its bytes and shown, and another one can be chosen. Of a log that
// was truncated while its writer went on, the text is shown, and the hole before it is not read.
func TestEncodings(t *testing.T) {
	s := openFiles(t)
	v := s.v
	for file, want := range map[string]struct{ encoding, text string }{
		"latin1.txt": {"windows-1252", "Die Mülleröffnung: 20 € für Straße 7"}, "utf16.txt": {"utf-16le", "Server gestartet: Größe 20 €"},
		"nuls.log": {"utf-8", "The file begins with 2.9 KiB of NUL bytes"}, "train.log": {"utf-8", "out of memory"},
	} {
		v.goTo(place{hash: in(s.failed, file), shows: want.text})
		if got := ask[string](v, `document.getElementById("encoding").value`); got != want.encoding {
			t.Errorf("%s is shown as %s", file, got)
		}
	}
	v.goTo(place{hash: in(s.failed, "latin1.txt"), shows: "Mülleröffnung"})
	ask[bool](v, `((e) => { e.value = "koi8-r"; return e.dispatchEvent(new Event("change")); })(document.getElementById("encoding"))`)
	v.sees("MЭllerЖffnung")
	if !ask[bool](v, `document.activeElement.id === "encoding" && document.activeElement.value === "koi8-r"`) {
		t.Error("the encoding that was chosen is not shown, or has lost the focus")
	}
	v.goTo(place{hash: in(s.failed, "data.bin"), shows: "4f 52 44 45 52"})
	v.goTo(place{hash: in(s.failed, "data.bin?view=text"), shows: "ORDER"})

	before := len(v.asked())
	v.goTo(place{hash: in(s.succeeded, "holed.log"), shows: "first line behind the hole"})
	v.sees("The file begins with 8.0 GiB of NUL bytes")
	v.wait("the line behind the hole is the first", `document.querySelector(".line .number").innerText === "1"`)
	v.settle()
	var read float64
	for _, r := range v.asked()[before:] {
		read += r.bytes
	}
	if read > 8<<20 {
		t.Errorf("the page read %.0f bytes to show two lines", read)
	}
	v.goTo(place{hash: in(s.succeeded, "holed.log?view=hex"), shows: "00000000"})
}

// TestTerminal: colors go on over ends of lines, backgrounds are shown, and of a line that was written over, as
// by a progress bar, what a terminal shows; the rest on request.
func TestTerminal(t *testing.T) {
	s := openFiles(t)
	v := s.v
	v.look(1280, "light")
	v.goTo(place{hash: in(s.succeeded, "colors.log"), shows: "plain again"})
	const colorOf = `((text) => getComputedStyle([...document.querySelectorAll(".line .text *, .line .text")].findLast((e) =>
		e.innerText.includes(text))))`
	colors := ask[[]string](v, `["FAILED", "assert 118", "of order", "plain again"].map((text) => `+colorOf+`(text).color)`)
	if colors[0] != colors[1] || colors[0] != colors[2] || colors[0] == colors[3] {
		t.Errorf("the colors of three red lines and a plain one are %q", colors)
	}
	grounds := ask[[]string](v, `[" ERROR ", " PASS ", " inverse ", "plain again"].map((text) => `+colorOf+`(text).backgroundColor)`)
	if grounds[0] == grounds[3] || grounds[1] == grounds[3] || grounds[0] == grounds[1] || grounds[2] == grounds[3] {
		t.Errorf("the backgrounds of three words with one and of a plain line are %q", grounds)
	}
	v.goTo(place{hash: in(s.succeeded, "progress.log"), shows: "2000/2000"})
	rows := ask[[]string](v, `[...document.querySelectorAll(".line .text")].map((e) => e.innerText)`)
	want := []string{"Downloading model.safetensors", "100%|" + strings.Repeat("█", 40) + "| 2000/2000 [00:58]",
		"Downloaded", "xyzdef", "short", "kept"}
	if !slices.Equal(rows, want) {
		t.Errorf("the page shows %q, a terminal %q", rows, want)
	}
	v.click("+2,000")
	v.sees("| 10/2000 [00:00]")
	v.wait("the lines keep their numbers", `document.querySelector(".line .number[aria-label='Line 2']")`)
	v.wait("it is shown as chosen", `document.getElementById("unfold").checked`)
	ask[bool](v, `(document.getElementById("unfold").click(), true)`)
	v.wait("each line has one row again", `document.querySelectorAll(".line").length === 6`)
	ask[bool](v, `(document.getElementById("search").focus(), true)`)
	v.do(chromedp.KeyEvent("xyzdef")) // which is nowhere in the bytes
	v.sees("1 of 1")
}

// TestOpensAtEnd: a log of a pod that failed opens at its end, and a button leads to its start. Another file, one
// of a pod that succeeded, and one of which a line was asked for open as they did.
func TestOpensAtEnd(t *testing.T) {
	s := openFiles(t)
	v := s.v
	const first, last = "step 1 of", "out of memory"
	for _, test := range []struct {
		hash        string
		sees, above string
	}{
		{in(s.failed, "train.log"), last, first}, {in(s.succeeded, "train.log"), first, last}, {in(s.failed, "notes.txt"), first, last},
		{in(s.failed, "train.log?line=3"), first, last},
	} {
		tab := newTab(v)
		must(t, tab.visit(s.origin+"/"+test.hash))
		tab.wait(test.sees+" is in sight", inSight(test.sees))
		if ask[bool](tab, inSight(test.above)) {
			t.Errorf("%s: %q is in sight too", test.hash, test.above)
		}
		tab.close()
	}
	v.goTo(place{hash: in(s.failed, "train.log"), shows: "Opened at its end: the pod failed."})
	v.wait("the end is in sight", inSight(last))
	v.click("Go to the start")
	v.wait("the start is in sight", inSight(first))
	if contains(v.text(), "Opened at its end") {
		t.Error("the page still says that it is at the end")
	}
}

// TestFocusRing: where the focus is can be seen on all four sides, wherever Tab leads in a file: nothing is painted
// over it. The picture with the focus is compared with the one without.
func TestFocusRing(t *testing.T) {
	s := openFiles(t)
	v := s.v
	for _, at := range []struct {
		width  int64
		scheme string
		place  place
	}{
		{1280, "light", place{hash: in(s.succeeded, "train.log?line=2-4"), shows: "901 lines"}},
		{390, "dark", place{hash: in(s.succeeded, "progress.log"), shows: "Downloaded"}},
		{820, "light", place{hash: in(s.succeeded, "data.bin"), shows: "4f 52 44"}},
	} {
		v.look(at.width, at.scheme)
		v.goTo(at.place)
		v.settle()
		ask[bool](v, `(document.querySelector("main").focus(), true)`)
		for stop, seen := 0, map[string]bool{}; stop < 30; stop++ {
			v.press(kb.Tab)
			name := ask[string](v, `((e) => e.closest(".file") ? (e.id || e.className || e.innerText) : "")(document.activeElement)`)
			if name == "" || seen[name] {
				if len(seen) > 0 && name == "" {
					break
				}
				continue
			}
			seen[name] = true
			if sides := ringIn(v); len(sides) > 0 {
				t.Errorf("%s: the ring of %q is not whole: %v", at.place.hash, name, sides)
			}
		}
	}
}

// ringIn returns the sides of the element with the focus where less than nine of ten pixels tell that it has it.
func ringIn(v *visitor) (missing []string) {
	v.t.Helper()
	box := ask[struct{ Left, Top, Right, Bottom float64 }](v, `((b) => ({Left: b.left, Top: b.top, Right: b.right, Bottom: b.bottom}))(
		document.activeElement.getBoundingClientRect())`)
	focused := v.picture()
	ask[bool](v, `(window.hadFocus = document.activeElement, hadFocus.blur(), true)`)
	blurred := v.picture()
	v.press(kb.Shift) // the next focus is by the keyboard, as the one before
	ask[bool](v, `(hadFocus.focus({focusVisible: true}), true)`)
	bounds := focused.Bounds()
	changed := func(x, y int) bool {
		return image.Pt(x, y).In(bounds) && focused.At(x, y) != blurred.At(x, y)
	}
	// The ring is up to four pixels in or out of the edge of the element.
	side := func(name string, from, to float64, at func(along, off int) bool) {
		var found, all int
		for along := int(from) + 6; along < int(to)-6; along++ {
			all++
			for off := -4; off <= 4; off++ {
				if at(along, off) {
					found++
					break
				}
			}
		}
		if found*10 < all*9 {
			missing = append(missing, fmt.Sprintf("%s: %d of %d", name, found, all))
		}
	}
	side("top", box.Left, box.Right, func(x, off int) bool { return changed(x, int(box.Top)+off) })
	side("bottom", box.Left, box.Right, func(x, off int) bool { return changed(x, int(box.Bottom)+off) })
	side("left", box.Top, box.Bottom, func(y, off int) bool { return changed(int(box.Left)+off, y) })
	side("right", box.Top, box.Bottom, func(y, off int) bool { return changed(int(box.Right)+off, y) })
	return missing
}

// picture is what the window shows.
func (v *visitor) picture() image.Image {
	v.t.Helper()
	shot, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	must(v.t, err)
	decoded, err := png.Decode(bytes.NewReader(shot))
	must(v.t, err)
	return decoded
}

// TestFilesAccessible: axe finds nothing wrong with any kind of file, and nothing is wider than the screen or
// cut through.
func TestFilesAccessible(t *testing.T) {
	library := axe(t)
	s := openFiles(t)
	v := s.v
	for _, look := range fileLooks[1:] {
		if look.name == "820-dark" || look.name == "1280-light" {
			continue // each width once, each theme more than once
		}
		v.look(look.width, look.scheme)
		for _, file := range []string{"train.log?line=3-4", "colors.log", "progress.log", "latin1.txt", "data.bin", longPath} {
			t.Run(look.name+"/"+file, func(t *testing.T) {
				v.t = t
				v.goTo(place{hash: in(s.failed, file), shows: "· 2026-"})
				v.settle()
				checkWithAxe(v, library)
				if wide := ask[float64](v, "document.documentElement.scrollWidth"); wide > float64(look.width) {
					t.Errorf("the page is %v wide", wide)
				}
				if cut := ask[[]string](v, cutThrough); len(cut) > 0 {
					t.Errorf("cut through: %q", cut)
				}
				if lines := ask[float64](v, toolLines); lines > 1 && look.width > 1000 || lines > 2 {
					t.Errorf("the tools take %v lines", lines)
				}
				if high := ask[float64](v, `document.querySelector(".code").getBoundingClientRect().height`); high < 360 {
					t.Errorf("%v pixels are left for the file", high)
				}
			})
		}
	}
	v.t = t
}

// toolLines is how many lines the tools of a file take.
const toolLines = `new Set([...document.querySelectorAll(".file .tools :is(button, input.goto, input.find)")].filter((e) =>
	e.checkVisibility()).map((e) => Math.round((e.getBoundingClientRect().top + e.getBoundingClientRect().bottom) / 8))).size`

// cutThrough returns the controls and steps of the path of which a part is not shown.
const cutThrough = `[...document.querySelectorAll(".path a, .file .bar :is(button, select, input, a)")].filter((e) => {
	const box = e.getBoundingClientRect();
	if (box.width === 0) return false;
	const frame = e.closest("nav, .bar").getBoundingClientRect();
	return box.top < frame.top - 1 || box.bottom > frame.bottom + 1 || box.left < 0 || box.right > innerWidth;
}).map((e) => e.innerText || e.outerHTML.slice(0, 100))`

// TestFileShots writes pictures of files into the directory that PAGE_SHOTS names.
func TestFileShots(t *testing.T) {
	directory := os.Getenv("PAGE_SHOTS")
	if directory == "" {
		t.Skip("PAGE_SHOTS names no directory for pictures")
	}
	must(t, os.MkdirAll(directory, 0o755))
	s := openFiles(t)
	for _, look := range fileLooks {
		s.v.look(look.width, look.scheme)
		for _, file := range []string{"train.log", "colors.log", "progress.log", "latin1.txt", "nuls.log", "data.bin", longPath} {
			s.v.goTo(place{hash: in(s.failed, file), shows: "· 2026-"})
			s.v.settle()
			s.v.shoot(filepath.Join(directory, fmt.Sprintf("file-%s-%s.png", strings.SplitN(filepath.Base(file), ".", 2)[0][:4], look.name)))
		}
	}
}
