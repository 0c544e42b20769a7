package hardware

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/placement/worlds"
)

// Family is a kind of pool.
type Family struct {
	// Name is kep, rack, tree, cubes, torus or windows.
	Name string
	// Size is the number of hosts of one pool of a tree, or of cubes of one pool of cubes; other families have one size.
	Size int
	// Spans are the hosts of the devices of a tree: each divides the next larger one.
	Spans []int
	// Extent in cubes of one pool of windows.
	Extent [3]int
	// Pools of that kind; 0 means 1.
	Pools int
}

// Limits of what a description may ask for, so that a slip of the pen ends in a message and not in a full memory.
const (
	maxPools = 512
	maxHosts = 20_000
)

// Families are the names that Family may have.
var Families = []string{"kep", "rack", "tree", "cubes", "torus", "windows"}

// FieldError is a fault of one field of a description.
type FieldError struct{ Field, Message string }

// Error is field: message.
func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// Build makes the pools. An error is a FieldError.
func (f Family) Build() (*Hardware, error) {
	make1, hosts, err := f.one()
	if err != nil {
		return nil, err
	}
	pools := f.Pools
	if pools == 0 {
		pools = 1
	}
	if pools < 0 || pools > maxPools {
		return nil, wrong("pools", "is %d, must be between 1 and %d", pools, maxPools)
	}
	if hosts*pools > maxHosts {
		return nil, wrong("pools", "%d pools of %d hosts are more than the %d hosts that are possible", pools, hosts, maxHosts)
	}
	return ofSite(worlds.Times(pools, make1)), nil
}

// one is the maker of one pool and its number of hosts.
func (f Family) one() (func(string) *worlds.Site, int, error) {
	if !slices.Contains(Families, f.Name) {
		return nil, 0, wrong("family", "is %q, must be one of %s", f.Name, strings.Join(Families, ", "))
	}
	if f.Name != "tree" && len(f.Spans) > 0 {
		return nil, 0, wrong("spans", "only a tree has spans")
	}
	if f.Name != "windows" && f.Extent != [3]int{} {
		return nil, 0, wrong("extent", "only windows have an extent")
	}
	if f.Name != "tree" && f.Name != "cubes" && f.Size != 0 {
		return nil, 0, wrong("size", "only trees and cubes have a size")
	}
	switch f.Name {
	case "kep":
		return worlds.KEP8x8, 16, nil
	case "rack":
		return worlds.Rack, 18, nil
	case "torus":
		return worlds.Torus, 4 * 5 * 7 * 16, nil
	case "cubes":
		if f.Size < 1 || f.Size > 256 {
			return nil, 0, wrong("size", "is %d, must be between 1 and 256 cubes", f.Size)
		}
		return worlds.Cubes(f.Size), f.Size * 16, nil
	case "windows":
		return f.windows()
	}
	return f.tree()
}

func (f Family) windows() (func(string) *worlds.Site, int, error) {
	cubes := 1
	for _, n := range f.Extent {
		if n < 1 || n > 16 {
			return nil, 0, wrong("extent", "must be three numbers between 1 and 16")
		}
		cubes *= n
	}
	// A plane is one counter set, and sets hold 32 counters.
	if f.Extent[0]*f.Extent[1] > 32 {
		return nil, 0, wrong("extent", "a plane of %d by %d cubes is larger than the 32 that are possible", f.Extent[0], f.Extent[1])
	}
	size := worlds.Extent{X: f.Extent[0], Y: f.Extent[1], Z: f.Extent[2]}
	var fit []worlds.Extent
	for _, w := range worlds.V5pWindows {
		if w.X <= size.X && w.Y <= size.Y && w.Z <= size.Z {
			fit = append(fit, w)
		}
	}
	return func(pool string) *worlds.Site { return worlds.Windows(pool, size, fit) }, cubes * 16, nil
}

func (f Family) tree() (func(string) *worlds.Site, int, error) {
	if f.Size < 1 || f.Size > 64 {
		return nil, 0, wrong("size", "is %d, must be between 1 and 64 hosts", f.Size)
	}
	if len(f.Spans) == 0 {
		return nil, 0, wrong("spans", "a tree needs the hosts of its devices, for instance [1, 2, 4, 8]")
	}
	spans := slices.Clone(f.Spans)
	slices.Sort(spans)
	for i, s := range spans {
		switch {
		case s < 1 || s > f.Size:
			return nil, 0, wrong("spans", "%d is not between 1 and the size, %d", s, f.Size)
		case i > 0 && s == spans[i-1]:
			return nil, 0, wrong("spans", "%d stands there twice", s)
		case i > 0 && s%spans[i-1] != 0:
			return nil, 0, wrong("spans", "%d does not divide %d", spans[i-1], s)
		}
	}
	var groups [][]int
	for _, span := range spans {
		for from := 0; from+span <= f.Size; from += span {
			group := make([]int, span)
			for i := range group {
				group[i] = from + i
			}
			groups = append(groups, group)
		}
	}
	return func(pool string) *worlds.Site { return worlds.Groups(pool, f.Size, groups) }, f.Size, nil
}

// Grows reports whether the family can have more or fewer pools or cubes.
func (f Family) Grows() bool { return f.Name != "" }

// Units is how many pools, or for a single pool of cubes how many cubes, there are.
func (f Family) Units() int {
	if f.Name == "cubes" && f.Pools <= 1 {
		return f.Size
	}
	return max(1, f.Pools)
}

// WithUnits is the family with another number of them.
func (f Family) WithUnits(n int) Family {
	if f.Name == "cubes" && f.Pools <= 1 {
		f.Size = n
	} else {
		f.Pools = n
	}
	return f
}
