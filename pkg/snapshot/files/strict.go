package files

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// checker holds a decoded document against a Go type. Unlike the decoders it goes on after a fault, so that one run shows
// every one of them.
type checker struct {
	fault func(field, message string)
	// unknown is told of fields that the type does not have.
	unknown func(field, message string)
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	quantity    = reflect.TypeFor[resource.Quantity]()
)

// check walks value and type together. Null stands for the zero value everywhere, as it does for the API server.
func (c checker) check(value any, t reflect.Type, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		c.own(value, t, at)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		c.object(value, t, at)
	case reflect.Map:
		members, ok := c.members(value, at)
		if !ok {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			c.check(members[key], t.Elem(), at+"["+key+"]")
		}
	case reflect.Slice:
		c.list(value, t, at)
	case reflect.String:
		if _, ok := value.(string); !ok {
			c.wrong(value, "a string", at)
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			c.wrong(value, "true or false", at)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		c.number(value, t, at)
	}
}

// own asks a type that decodes itself.
func (c checker) own(value any, t reflect.Type, at string) {
	if t == quantity && !sane(value) {
		c.fault(at, fmt.Sprintf("the exponent of %v is out of range", value))
		return
	}
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		c.fault(at, fmt.Sprintf("%s is not a %s: %s", show(value), strings.ToLower(t.Name()), text))
	}
}

// sane keeps out quantities such as 1e1000000000, whose digits alone would take minutes to write down.
func sane(value any) bool {
	text := fmt.Sprint(value)
	if len(text) > 256 {
		return false
	}
	i := strings.LastIndexAny(text, "eE")
	if i < 0 || i == len(text)-1 {
		return true
	}
	exponent, err := strconv.Atoi(text[i+1:])
	return err != nil || (-100 < exponent && exponent < 100)
}

func (c checker) members(value any, at string) (map[string]any, bool) {
	members, ok := value.(map[string]any)
	if !ok {
		c.wrong(value, "an object", at)
	}
	return members, ok
}

func (c checker) object(value any, t reflect.Type, at string) {
	members, ok := c.members(value, at)
	if !ok {
		return
	}
	fields := map[string]reflect.Type{}
	collect(t, fields)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		field := join(at, key)
		of, known := fields[key]
		if !known {
			c.unknown(field, "unknown field"+meant(key, fields))
			continue
		}
		c.check(members[key], of, field)
	}
}

// collect lists the fields of a struct by their JSON names, with those of inlined structs.
func collect(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			collect(inner, into)
		case name == "":
			into[f.Name] = f.Type
		default:
			into[name] = f.Type
		}
	}
}

// meant offers the field that differs in case only.
func meant(key string, fields map[string]reflect.Type) string {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.EqualFold(name, key) {
			return ": it is spelled " + name
		}
	}
	return ""
}

func (c checker) list(value any, t reflect.Type, at string) {
	if text, ok := value.(string); ok && t.Elem().Kind() == reflect.Uint8 {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			c.fault(at, "is not base64")
		}
		return
	}
	items, ok := value.([]any)
	if !ok {
		c.wrong(value, "a list", at)
		return
	}
	for i, item := range items {
		c.check(item, t.Elem(), fmt.Sprintf("%s[%d]", at, i))
	}
}

func (c checker) number(value any, t reflect.Type, at string) {
	n, ok := value.(json.Number)
	if !ok {
		c.wrong(value, "a number", at)
		return
	}
	if t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 {
		if f, err := n.Float64(); err != nil || math.IsInf(f, 0) {
			c.fault(at, fmt.Sprintf("%s is out of range", n))
		}
		return
	}
	integer, ok := new(big.Int).SetString(n.String(), 10)
	switch {
	case !ok:
		c.fault(at, fmt.Sprintf("%s is not a whole number in plain digits", n))
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 && (!integer.IsUint64() || reflect.Zero(t).OverflowUint(integer.Uint64())),
		t.Kind() <= reflect.Int64 && (!integer.IsInt64() || reflect.Zero(t).OverflowInt(integer.Int64())):
		c.fault(at, fmt.Sprintf("%s is out of range", n))
	}
}

func (c checker) wrong(value any, want, at string) {
	c.fault(at, fmt.Sprintf("is %s, must be %s", show(value), want))
}

// show words a value in a message.
func show(value any) string {
	switch v := value.(type) {
	case string:
		if len(v) > 40 {
			v = strings.ToValidUTF8(v[:40], "") + "..."
		}
		return strconv.Quote(v)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
