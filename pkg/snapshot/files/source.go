package files

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// document is one non-empty part of a file.
type document struct {
	file  string
	index int
	// value is the document as encoding/json decodes it, with numbers as json.Number.
	value any
}

// maxFile bounds a file, so that a wrong path such as a device does not fill the memory.
const maxFile = 512 << 20

// documents reads every document of the paths, in order. A directory stands for its .yaml, .yml and .json files by name,
// without those of its subdirectories.
func documents(paths []string, stdin io.Reader) ([]document, Faults) {
	var docs []document
	var faults Faults
	for i, path := range paths {
		if path == Stdin && slices.Contains(paths[:i], Stdin) {
			faults = append(faults, Fault{File: path, Message: "standard input can be read only once"})
			continue
		}
		names, err := expand(path)
		if err != nil {
			faults = append(faults, Fault{File: path, Message: plain(err)})
			continue
		}
		for _, name := range names {
			content, err := load(name, stdin)
			if err != nil {
				faults = append(faults, Fault{File: name, Message: plain(err)})
				continue
			}
			d, f := parse(name, content)
			docs, faults = append(docs, d...), append(faults, f...)
		}
	}
	return docs, faults
}

func expand(path string) ([]string, error) {
	switch path {
	case "":
		return nil, fmt.Errorf("the name of a file is empty")
	case Stdin:
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the directory has no .yaml, .yml or .json file")
	}
	return names, nil
}

func load(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != Stdin {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	if from == nil {
		return nil, fmt.Errorf("there is no standard input")
	}
	content, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)
	}
	return content, err
}

// plain drops what os says of the operation; the path stands in front already.
func plain(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// parse splits a file into its documents. A document that cannot be read is a fault and does not hide the others.
func parse(name string, content []byte) ([]document, Faults) {
	var docs []document
	var faults Faults
	index := 0
	for _, part := range split(content) {
		values, err := decode(part.text)
		for _, value := range values {
			index++
			docs = append(docs, document{file: name, index: index, value: value})
		}
		if err != nil {
			// Once more behind as many empty lines as stand above, so that line numbers are those of the file.
			padded := slices.Concat(bytes.Repeat([]byte("\n"), part.line), part.text)
			if _, again := decode(padded); again != nil {
				err = again
			}
			index++
			faults = append(faults, Fault{File: name, Document: index, Message: syntax(err)})
		}
	}
	return docs, faults
}

type part struct {
	// line is how many lines of the file stand above.
	line int
	text []byte
}

// split cuts at lines that begin with the document marker "---"; what follows the marker on its line belongs to the
// document that it begins. A line "..." ends a document.
func split(content []byte) []part {
	content = utf8(content)
	parts := []part{{}}
	for above := 0; len(content) > 0; above++ {
		var text []byte
		text, content = line(content)
		for _, marker := range []string{"---", "..."} {
			if rest, cut := bytes.CutPrefix(text, []byte(marker)); cut && (len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0]))) {
				parts = append(parts, part{line: above})
				text = rest
				break
			}
		}
		last := &parts[len(parts)-1]
		last.text = append(last.text, text...)
	}
	return parts
}

// decode reads one part: a YAML document, or JSON objects one after the other. There are no values in one that holds
// nothing but comments. Of JSON the objects before an error are returned.
func decode(text []byte) ([]any, error) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return nil, nil
	}
	if trimmed[0] == '{' {
		// What kubectl writes as JSON is read as such: that is faster, and tabs are allowed.
		values, err := decodeJSON(trimmed)
		if err == nil || len(values) > 0 || errors.As(err, &keyTwice{}) {
			return values, err
		}
		// The YAML parser below would stop after the closing brace and not say so.
		if err := alone(text); err != nil {
			return nil, err
		}
	}
	raw, err := toJSON(text)
	if err != nil {
		return nil, err
	}
	values, err := decodeJSON(raw)
	if len(values) == 1 && values[0] == nil {
		values = nil
	}
	return values, err
}

// alone fails when a second document follows the first.
func alone(text []byte) error {
	d := yamlv3.NewDecoder(bytes.NewReader(text))
	var first, second yamlv3.Node
	if err := d.Decode(&first); err != nil {
		return err
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("a second object follows without --- above it")
		}
		return err
	}
	return nil
}

// syntax is the parser's complaint on one line.
func syntax(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the file ends in the middle of an object"
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: unmarshal errors: ", "yaml: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return cmp.Or(text, "cannot be read")
}
