package page

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// picture is a PNG with something on it.
func picture(width, height int) string {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{uint8(40 + 180*x/width), uint8(90 + 120*y/height), 160, 255})
		}
	}
	var text bytes.Buffer
	if err := png.Encode(&text, m); err != nil {
		panic(err)
	}
	return text.String()
}
