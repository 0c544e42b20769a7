package fuzztest

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostChanges bounds the changes of one input: more of them only hide each other.
const mostChanges = 32

var (
	quantity = reflect.TypeFor[resource.Quantity]()
	moment   = reflect.TypeFor[metav1.Time]()
)

// Breaker knows the texts of a world, so that it can put one in the place of another: names then refer to the wrong thing
// and keys collide.
type Breaker struct{ texts []string }

// New learns the texts of a world.
func New(world any) *Breaker {
	seen := map[string]bool{}
	collect(reflect.ValueOf(world), seen)
	return &Breaker{texts: slices.Sorted(maps.Keys(seen))}
}

func collect(v reflect.Value, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collect(v.Elem(), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collect(v.Field(i), seen)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			collect(key, seen)
			collect(v.MapIndex(key), seen)
		}
	case reflect.String:
		seen[v.String()] = true
	}
}

// Break changes what a pointer leads to, in place, as the bytes choose. Without bytes it changes nothing; the same bytes
// make the same changes.
func (b *Breaker) Break(data []byte, world any) {
	c := &chooser{data: data, texts: b.texts}
	for range mostChanges {
		if len(c.data) == 0 {
			return
		}
		c.value(reflect.ValueOf(world).Elem())
	}
}

// value changes one thing in or below a settable value.
func (c *chooser) value(v reflect.Value) {
	switch v.Type() {
	case quantity:
		v.Set(reflect.ValueOf(resource.MustParse(pick(c, quantities))))
		return
	case moment:
		v.Set(reflect.ValueOf(metav1.NewTime(pick(c, moments))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		c.structure(v)
	case reflect.Pointer:
		switch {
		case v.IsNil():
			v.Set(reflect.New(v.Type().Elem()))
			c.value(v.Elem())
		case c.seldom():
			v.SetZero()
		default:
			c.value(v.Elem())
		}
	case reflect.Slice:
		c.slice(v)
	case reflect.Map:
		c.mapping(v)
	case reflect.String:
		v.SetString(c.text(v.String()))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(c.integer(v.Int())) // what does not fit is cut off, as good as any other
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(c.integer(int64(v.Uint()))))
	}
}

// structure goes on in one field, most often one that says something.
func (c *chooser) structure(v reflect.Value) {
	var all, said []int
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		all = append(all, i)
		if !v.Field(i).IsZero() {
			said = append(said, i)
		}
	}
	if len(said) > 0 && !c.seldom() {
		all = said
	}
	if len(all) > 0 {
		c.value(v.Field(pick(c, all)))
	}
}

func (c *chooser) slice(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		raw, err := json.Marshal(c.text(""))
		if err != nil {
			panic(err) // every text can be marshalled
		}
		v.SetBytes(raw) // raw bytes of the API are JSON
		return
	}
	n := v.Len()
	if n > 0 && !c.seldom() {
		c.value(reflect.Indirect(v.Index(c.below(n))))
		return
	}
	made := reflect.New(v.Type().Elem()).Elem()
	if made.Kind() == reflect.Pointer {
		made.Set(reflect.New(made.Type().Elem())) // no list of the API has nulls
	}
	what := c.below(5)
	switch {
	case what == 0:
		v.SetZero()
	case what == 1 || n == 0:
		v.Set(reflect.Append(v, made))
		c.value(reflect.Indirect(v.Index(n)))
	case what == 2: // one element less
		i := c.below(n)
		v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, n)))
	case what == 3: // one element twice; a pointer's object is copied, so that each can be changed
		from := v.Index(c.below(n))
		if made.Kind() == reflect.Pointer {
			made.Elem().Set(from.Elem())
		} else {
			made.Set(from)
		}
		v.Set(reflect.Append(v, made))
	default:
		i, j := v.Index(c.below(n)), v.Index(c.below(n))
		a, b := reflect.ValueOf(i.Interface()), reflect.ValueOf(j.Interface())
		i.Set(b)
		j.Set(a)
	}
}

func (c *chooser) mapping(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	value := reflect.New(v.Type().Elem()).Elem()
	if len(keys) == 0 || c.seldom() {
		key := reflect.New(v.Type().Key()).Elem()
		c.value(key)
		c.value(value)
		v.SetMapIndex(key, value)
		return
	}
	key := pick(c, keys)
	if c.seldom() {
		v.SetMapIndex(key, reflect.Value{})
		return
	}
	value.Set(v.MapIndex(key))
	c.value(value)
	v.SetMapIndex(key, value)
}

var quantities = []string{
	"0", "1", "-1", "1m", "1n", "500m", "3", "64", "1Gi", "8Ei", "9223372036854775807", "-9223372036854775808",
	"9223372036854775807m", "1e18", "-1e18", "1e30", "-1e30", "0.1", "100000000000000000000000000000",
}

var moments = []time.Time{
	{}, time.Unix(0, 0), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
}
