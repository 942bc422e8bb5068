package verbs

import "io"

// pieces is how many bytes are copied at once: as many as the daemon sends. io.Copy takes 32 KiB, so
// that each byte goes through one more buffer.
const pieces = 256 << 10

// copyTo copies until the end of r.
func copyTo(w io.Writer, r io.Reader) error {
	// A file's ReadFrom has a buffer of its own, so it is hidden.
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, pieces))
	return err
}
