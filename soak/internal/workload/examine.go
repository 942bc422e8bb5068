package workload

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// examine compares a YAML tree with the type that it is to be decoded into.
// Decoding does so too, but its errors do not say which field they are about,
// what is allowed there, or that 1.5 pods would be 1.
func examine(node *yaml.Node, t reflect.Type, field string) error {
	node = target(node)
	if isNull(node) {
		return nil
	}
	_, decodesItself := reflect.TypeAssert[yaml.Unmarshaler](reflect.New(t))
	switch {
	case decodesItself:
		return examineValue(node, t, field)
	case t.Kind() == reflect.Struct:
		return examineFields(node, t, field)
	case t.Kind() == reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			return &fieldError{field, "has to be a list"}
		}
		for i, element := range node.Content {
			inner := fmt.Sprintf("%s[%d]", field, i)
			if isNull(target(element)) {
				// Decoding would pass over it, and count the others anew.
				return &fieldError{inner, "is empty"}
			}
			if err := examine(element, t.Elem(), inner); err != nil {
				return err
			}
		}
		return nil
	default:
		return examineValue(node, t, field)
	}
}

func examineFields(node *yaml.Node, t reflect.Type, field string) error {
	types, names := fields(t)
	if node.Kind != yaml.MappingNode {
		if field == "" {
			field = "the document"
		}
		return &fieldError{field, "has to have fields, of " + enumerate(names)}
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		inner := strings.TrimPrefix(field+"."+name, ".")
		of, known := types[name]
		switch {
		case !known:
			return &fieldError{inner, "is unknown, it has to be one of " + enumerate(names)}
		case seen[name]:
			return &fieldError{inner, "is given twice"}
		}
		seen[name] = true
		if err := examine(node.Content[i+1], of, inner); err != nil {
			return err
		}
	}
	return nil
}

// fields are the names and types of a struct's fields in YAML.
func fields(t reflect.Type) (types map[string]reflect.Type, names []string) {
	types = make(map[string]reflect.Type)
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		types[name] = field.Type
		names = append(names, name)
	}
	return types, names
}

// examineValue tries whether a value can be decoded.
func examineValue(node *yaml.Node, t reflect.Type, field string) error {
	if node.Kind != yaml.ScalarNode {
		return &fieldError{field, "has to be " + wanted(t)}
	}
	err := node.Decode(reflect.New(t).Interface())
	// Decoding would take 1.5 for 1.
	whole := t == reflect.TypeFor[int]() || t == reflect.TypeFor[int64]()
	if err != nil || whole && node.ShortTag() != "!!int" {
		return &fieldError{field, fmt.Sprintf("is %q, it has to be %s", node.Value, wanted(t))}
	}
	return nil
}

// wanted says for people what values a type has.
func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return "a duration such as 1m30s or 500ms"
	case reflect.TypeFor[Bytes]():
		return "a size such as 512Mi or 2Gi, or a whole number of bytes"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	}
	return "text"
}
