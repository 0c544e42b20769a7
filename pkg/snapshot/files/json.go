package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// deepest is how deep JSON may nest. No object of the API comes near it.
const deepest = 1000

// keyTwice is a key that an object has twice. encoding/json would take the last in silence.
type keyTwice struct{ key string }

// Error words it as the YAML parser does.
func (e keyTwice) Error() string { return fmt.Sprintf("key %q already set in map", e.key) }

// decodeJSON reads values, one after the other, as encoding/json decodes them into an any, with numbers as json.Number.
// With an error come the values before it.
func decodeJSON(raw []byte) ([]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var values []any
	for d.More() {
		value, err := next(d, 0)
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
	_, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return values, err
}

func next(d *json.Decoder, depth int) (any, error) {
	if depth > deepest {
		return nil, fmt.Errorf("nests deeper than %d", deepest)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		members := map[string]any{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			key, ok := token.(string)
			if !ok {
				return nil, fmt.Errorf("%v is no key", token)
			}
			if _, twice := members[key]; twice {
				return nil, keyTwice{key}
			}
			if members[key], err = next(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return members, err
	case json.Delim('['):
		items := []any{}
		for d.More() {
			item, err := next(d, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err = d.Token()
		return items, err
	}
	return token, nil
}
