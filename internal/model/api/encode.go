package api

import (
	"bytes"
	"encoding/json"
)

// Encode returns an answer in JSON, with a line break behind it. The characters <, > and & stand for
// themselves: answers are application/json, which no browser reads as HTML, and each of them escaped would
// take six bytes.
func Encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
