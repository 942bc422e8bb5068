package uplink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// bounded is a list of at most as many items as a request may have. In memory empty ones take fifty times the body.
type bounded[T any] []T

// UnmarshalJSON reads the items one by one, up to the first one too many.
func (f *bounded[T]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	begin, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case begin != nil && begin != json.Delim('['):
		return errors.New("items are no list")
	}
	for *f = nil; decoder.More(); {
		var item T
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		if *f = append(*f, item); len(*f) > mostAnswers {
			return fmt.Errorf("there are more than the %d that it may have", mostAnswers)
		}
	}
	return nil
}
