package web

import "bytes"

// imageStart is how many bytes of a file tell whether it is an image.
const imageStart = 16

// imageType returns the type of an image by its first bytes, of those that a browser may show; empty for
// all other files. An SVG is none of them: it has scripts.
func imageType(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(start, []byte("GIF87a")), bytes.HasPrefix(start, []byte("GIF89a")):
		return "image/gif"
	case len(start) >= 16 && bytes.HasPrefix(start, []byte("RIFF")) && bytes.Equal(start[8:15], []byte("WEBPVP8")):
		return "image/webp"
	}
	return ""
}
