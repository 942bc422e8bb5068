package workload

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// target is what an alias stands for.
func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// isNull reports whether a value was left out, behind its name.
func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// find returns the node of a field, or the innermost one around it that there
// is, and whether it is the field's own.
func find(node *yaml.Node, field string) (*yaml.Node, bool) {
	for _, step := range strings.FieldsFunc(field, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		next := child(target(node), step)
		if next == nil {
			return node, false
		}
		node = next
	}
	return node, !isNull(target(node))
}

// child is the value of a mapping's field, or a sequence's element; nil if
// there is none. Of a field that is given twice it is the second.
func child(node *yaml.Node, step string) *yaml.Node {
	var found *yaml.Node
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				found = node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			found = node.Content[i]
		}
	}
	return found
}
