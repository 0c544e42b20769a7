package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Fault is one thing wrong with a configuration file.
type Fault struct {
	// File as it was named to Load.
	File string
	// Line of the field, or of the closest parent that stands in the file; 0 if there is none.
	Line int
	// Message names the field.
	Message string
}

// Error is file:line: message.
func (f Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message)
}

// Load reads a file over Default and validates the result. The error joins a Fault for everything that is wrong; a file
// whose fields cannot all be read is not validated on top.
func Load(path string) (BerthConfiguration, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return BerthConfiguration{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return parse(path, content)
}

func parse(path string, content []byte) (BerthConfiguration, error) {
	fault := func(line int, format string, args ...any) error {
		return Fault{File: path, Line: line, Message: fmt.Sprintf(format, args...)}
	}
	documents := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		return BerthConfiguration{}, fault(0, "the file is empty; it needs apiVersion: %s and kind: %s", APIVersion, Kind)
	case err != nil:
		return BerthConfiguration{}, fault(0, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return BerthConfiguration{}, fault(second.Line, "the file holds more than one document")
	}

	root := document.Content[0]
	config := Default()
	// These two are not defaulted: a file must say what it is.
	config.APIVersion, config.Kind = "", ""
	r := reader{file: path}
	r.read(root, &config)
	if len(r.faults) > 0 {
		return BerthConfiguration{}, errors.Join(r.faults...)
	}
	for _, invalid := range config.Validate() {
		r.faults = append(r.faults, fault(lineOf(root, invalid.Field), "%s", invalid.Error()))
	}
	if len(r.faults) > 0 {
		return BerthConfiguration{}, errors.Join(r.faults...)
	}
	return config, nil
}

// lineOf is the line of the field's key, or of the closest parent that the file names.
func lineOf(node *yaml.Node, path string) int {
	line := 0
	for name := range strings.SplitSeq(path, ".") {
		found := false
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				line, node, found = node.Content[i].Line, node.Content[i+1], true
				break
			}
		}
		if !found {
			break
		}
	}
	return line
}
