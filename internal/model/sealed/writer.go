package sealed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
)

// castagnoli is the polynomial for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a body and then its seal.
type Writer struct {
	to   io.Writer
	seal seal
}

// NewWriter returns a Writer to w, for who asked with that word.
func NewWriter(w io.Writer, word string) *Writer { return &Writer{to: w, seal: seal{Word: word}} }

// Write writes a part of the body.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.seal.Bytes += int64(n)
	w.seal.Sum = crc32.Update(w.seal.Sum, castagnoli, p[:n])
	return n, err
}

// Seal ends the body. It is called once, if all of the body was written.
func (w *Writer) Seal(n Notes) error {
	w.seal.Notes = n.bounded()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(w.seal); err != nil {
		return err
	}
	if text.Len() > Size {
		return fmt.Errorf("a seal of %d bytes has no room for %d", Size, text.Len())
	}
	_, err := w.to.Write(append(text.Bytes(), make([]byte, Size-text.Len())...))
	return err
}
