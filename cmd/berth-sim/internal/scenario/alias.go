package scenario

import (
	"fmt"

	yaml "go.yaml.in/yaml/v3"
)

// maxNodes is how many nodes a document may have with its aliases written out.
const maxNodes = 100_000

// unfold walks a document with its aliases written out, and finds the one that stands in itself, or too many nodes.
func unfold(n *yaml.Node, within map[*yaml.Node]bool, left *int) *Fault {
	n = resolve(n)
	*left--
	switch {
	case within[n]:
		return &Fault{Line: n.Line, Message: fmt.Sprintf("what %q stands for contains itself", n.Anchor)}
	case *left < 0:
		return &Fault{Message: "its aliases make it too large"}
	}
	within[n] = true
	defer delete(within, n)
	for _, inner := range n.Content {
		if f := unfold(inner, within, left); f != nil {
			return f
		}
	}
	return nil
}
