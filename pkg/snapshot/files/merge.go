package files

import (
	"bytes"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// toJSON turns a YAML document into JSON and refuses a key given twice. What the strict parser takes for one, but is a key
// that overrides another one merged in above it with "<<", is none.
func toJSON(text []byte) ([]byte, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err == nil || !bytes.Contains(text, []byte("<<")) {
		return raw, err
	}
	var document yamlv3.Node
	if yamlv3.Unmarshal(text, &document) != nil || !overrides(&document) {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// overrides is true when every key stands once in its mapping, and merges stand in front of what overrides them: one that
// stands behind is read in different ways by different parsers. What an alias stands for is looked at where it is written.
func overrides(n *yamlv3.Node) bool {
	if n.Kind == yamlv3.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if seen[key] || key == "<<" && i > 0 {
				return false
			}
			seen[key] = true
		}
	}
	for _, c := range n.Content {
		if !overrides(c) {
			return false
		}
	}
	return true
}
