package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Read reads a workload from a YAML file, fills in what it leaves out and
// checks it. The error names the file, the line and the field, its value and
// what is allowed.
func Read(path string) (Workload, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Workload{}, fmt.Errorf("read workload: %w", err)
	}
	return parse(path, text)
}

// YAML writes the workload in full. Read makes the same of it again.
func (w Workload) YAML() string {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(w), encoder.Close()); err != nil {
		// There is nothing in a workload that cannot be written.
		panic(fmt.Sprintf("write workload: %v", err))
	}
	return text.String()
}

// parse reads a workload; name is for its errors.
func parse(name string, text []byte) (Workload, error) {
	root, err := onlyDocument(text)
	if err != nil {
		return Workload{}, fmt.Errorf("%s: %w", name, err)
	}
	w := defaults()
	if err := decode(text, root, &w); err != nil {
		return Workload{}, locate(name, root, err)
	}
	if err := w.Check(); err != nil {
		return Workload{}, locate(name, root, err)
	}
	return w, nil
}

// onlyDocument is the YAML tree of a text with one document.
func onlyDocument(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF) || err == nil && isNull(document.Content[0]):
		return nil, errors.New("there is nothing in it; a preset would be an example to begin with")
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("there is more than one YAML document in it, it has to be only one"), err)
	}
	return document.Content[0], nil
}

// decode fills w from a text, whose tree is root.
func decode(text []byte, root *yaml.Node, w *Workload) error {
	if err := examine(root, reflect.TypeFor[Workload](), ""); err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	// There are no others by now; a field that examine overlooks must not go unseen.
	decoder.KnownFields(true)
	if err := decoder.Decode(w); err != nil {
		return err
	}
	if len(w.Faults) == 0 {
		w.Faults = nil
	}
	for i := range w.Faults {
		if _, given := find(root, fmt.Sprintf("faults[%d].times", i)); !given {
			w.Faults[i].Times = 1
		}
	}
	return nil
}

// locate adds the name and, where the field is in the file, its line.
func locate(name string, root *yaml.Node, err error) error {
	if wrong, ok := errors.AsType[*fieldError](err); ok {
		if node, _ := find(root, wrong.field); node != root {
			return fmt.Errorf("%s:%d: %w", name, node.Line, err)
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}
