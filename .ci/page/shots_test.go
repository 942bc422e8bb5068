package page

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestShots writes pictures of the page into the directory that PAGE_SHOTS names.
func TestShots(t *testing.T) {
	directory := os.Getenv("PAGE_SHOTS")
	if directory == "" {
		t.Skip("PAGE_SHOTS names no directory for pictures")
	}
	must(t, os.MkdirAll(directory, 0o755))
	c, _, v := openShowcase(t)
	for _, look := range looks {
		v.look(look.width, look.scheme)
		for _, at := range c.places() {
			v.goTo(at)
			v.settle()
			v.shoot(filepath.Join(directory, fmt.Sprintf("%s-%s.png", at.name, look.name)))
		}
		v.goTo(place{hash: "#/ci/" + c.failed, shows: "README"})
		v.click("Delete…")
		v.wait("a dialog asks", dialog)
		v.shoot(filepath.Join(directory, "delete-dialog-"+look.name+".png"))
		v.press("\x1b")
	}
}

// shoot writes a picture of the window.
func (v *visitor) shoot(path string) {
	v.t.Helper()
	picture, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	must(v.t, err, os.WriteFile(path, picture, 0o644))
}
