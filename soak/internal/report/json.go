package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the result for machines.
func (x *Result) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(x); err != nil {
		return fmt.Errorf("as JSON: %w", err)
	}
	return nil
}
