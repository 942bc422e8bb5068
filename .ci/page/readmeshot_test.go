package page

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestReadmeShot writes page.png, the picture of README.md, into the directory that PAGE_SHOTS names.
func TestReadmeShot(t *testing.T) {
	directory := os.Getenv("PAGE_SHOTS")
	if directory == "" {
		t.Skip("PAGE_SHOTS names no directory for pictures")
	}
	must(t, os.MkdirAll(directory, 0o755))
	c := newShowcase(t)
	p, v := startPlugin(t, c.kubeconfig("token-of-alice", "")), newVisitor(t)
	p.enter(v)
	v.look(1200, "light")
	v.do(chromedp.EmulateViewport(1200, 520))
	v.goTo(place{hash: "#/ci", shows: c.failedPod})
	v.settle()
	taken, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	must(t, err)
	picture, err := png.Decode(bytes.NewReader(taken))
	must(t, err)
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	must(t, encoder.Encode(&small, withPalette(picture)))
	if small.Len() > 60<<10 {
		t.Errorf("the picture has %d bytes", small.Len())
	}
	must(t, os.WriteFile(filepath.Join(directory, "page.png"), small.Bytes(), 0o644))
}

// withPalette returns the picture in its 64 most frequent colours: text and lines look the same, and it takes a third.
func withPalette(picture image.Image) image.Image {
	at := picture.Bounds()
	count := map[color.Color]int{}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			count[picture.At(x, y)]++
		}
	}
	palette := make(color.Palette, 0, len(count))
	for c := range count {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	small := image.NewPaletted(at, palette[:min(64, len(palette))])
	draw.Draw(small, at, picture, at.Min, draw.Src)
	return small
}
