package fakevpsa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// params are the fields of a request: of its query and its body. The brackets at the end of a name,
// as in volume_name[], are left out.
type params map[string][]string

func (p params) get(key string) string {
	if values := p[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// list returns the values of a field that may be repeated, or hold several values with commas.
func (p params) list(key string) []string {
	var all []string
	for _, value := range p[key] {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}

func (p params) yes(key string) bool { return strings.EqualFold(p.get(key), "YES") }

func (p params) add(key string, values ...string) {
	key = strings.TrimSuffix(key, "[]")
	p[key] = append(p[key], values...)
}

// number returns a field that holds a number that is not negative, and 0 when there is no such field.
func (p params) number(key string) (int64, error) {
	value := p.get(key)
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q, which is no number", key, value)
	}
	return n, nil
}

// size returns a field that holds whole GB, such as 50 or 50G.
func (p params) size(key string) (int64, error) {
	value := p.get(key)
	n, err := strconv.ParseInt(strings.TrimSuffix(value, "G"), 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return 0, fmt.Errorf("%s is %q, which is no number of whole GB", key, value)
	}
	return n, nil
}

// decode reads a body, JSON or a form, whatever its header says: clients of both kinds exist that say
// nothing.
func (p params) decode(body []byte) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if body[0] == '{' {
		return p.decodeJSON(body)
	}
	form, err := url.ParseQuery(string(body))
	for key, values := range form {
		p.add(key, values...)
	}
	return err
}

func (p params) decodeJSON(body []byte) error {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON")
	}
	for key, value := range fields {
		values, ok := value.([]any)
		if !ok {
			values = []any{value}
		}
		for _, value := range values {
			switch value := value.(type) {
			case nil:
			case string:
				p.add(key, value)
			case json.Number:
				p.add(key, value.String())
			case bool:
				p.add(key, strconv.FormatBool(value))
			default:
				return fmt.Errorf("%s is neither text nor a number", key)
			}
		}
	}
	return nil
}
