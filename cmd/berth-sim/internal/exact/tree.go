package exact

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/inventory"
)

// Class is one kind of gang.
type Class struct {
	Name string
	// Hosts of its devices.
	Hosts int
	// Rate is how many come per hour.
	Rate float64
	// Mean is how many hours one stays.
	Mean float64
}

// tree is the devices of all pools as one tree: below a root that nobody can hold stand the roots of the forests.
type tree struct {
	classes []Class
	hosts   int
	// devices by number; the last one is the root.
	devices []device
	forms   []form
	formOf  map[string]int
	at      map[inventory.DeviceName]int
}

type device struct {
	// class is an index of classes, or -1 where no gang asks for the device.
	class, hosts, parent int
	children             []int
	form                 int
}

// form is what a subtree looks like. Subtrees of equal form can change places.
type form struct {
	class, hosts int
	// children are forms in ascending order.
	children []int
}

func newTree(inv *inventory.Inventory, classes []Class) (*tree, error) {
	t := &tree{classes: classes, formOf: map[string]int{}, at: map[inventory.DeviceName]int{}}
	for _, p := range inv.Pools() {
		near := p.Plan().Neighbours()
		if p.Problem != nil || !near.Complete || !near.Laminar {
			return nil, fmt.Errorf("pool %s is no forest: the best policy is computed only where of two devices that exclude each other one lies in the other", p.ID)
		}
		t.hosts += len(p.Plan().Hosts())
		first := len(t.devices)
		for i, d := range p.Devices {
			t.at[inventory.DeviceName{Pool: p.ID, Name: d.Name}] = first + i
			parent := -1
			if near.Parent[i] >= 0 {
				parent = first + int(near.Parent[i])
			}
			t.devices = append(t.devices, device{class: -1, hosts: len(d.Hosts), parent: parent})
		}
	}
	for i, c := range classes {
		found := false
		for _, d := range inv.Class(c.Name).OfSpan(c.Hosts) {
			at := t.at[inventory.DeviceName{Pool: d.Pool, Name: d.Name}]
			if t.devices[at].class >= 0 {
				return nil, fmt.Errorf("device %s serves two classes, %s and %s", d.Short(), classes[t.devices[at].class].Name, c.Name)
			}
			t.devices[at].class, found = i, true
		}
		if !found {
			return nil, fmt.Errorf("no device of class %s spans %d hosts", c.Name, c.Hosts)
		}
	}
	root := len(t.devices)
	t.devices = append(t.devices, device{class: -1, parent: -1})
	for i := range root {
		if t.devices[i].parent < 0 {
			t.devices[i].parent = root
		}
		p := t.devices[i].parent
		t.devices[p].children = append(t.devices[p].children, i)
	}
	t.shape(root)
	return t, nil
}

// shape numbers the forms of a subtree.
func (t *tree) shape(at int) int {
	d := &t.devices[at]
	f := form{class: d.class, hosts: d.hosts}
	for _, c := range d.children {
		f.children = append(f.children, t.shape(c))
	}
	slices.Sort(f.children)
	key := fmt.Sprint(f)
	n, known := t.formOf[key]
	if !known {
		n = len(t.forms)
		t.forms, t.formOf[key] = append(t.forms, f), n
	}
	t.devices[at].form = n
	return n
}

// states are the states of subtrees, each numbered once.
type states struct {
	forms  []form
	all    []state
	number map[string]int
	free   map[int]int
	placed []map[int][]int
	left   [][]departure
	// closed: all states that can be reached are known, so that several may read at a time.
	closed bool
}

// state of a subtree of a form: held as a whole, or what its children are, in ascending order.
type state struct {
	form     int
	held     bool
	children []int
	// busy is how many hosts are held.
	busy int
}

// departure is that one of count gangs of the class ends.
type departure struct{ to, class, count int }

func newStates(forms []form) *states {
	return &states{forms: forms, number: map[string]int{}, free: map[int]int{}}
}

func (s *states) intern(st state) int {
	slices.Sort(st.children)
	key := make([]byte, 0, 8+4*len(st.children))
	put := func(n int) { key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }
	put(st.form)
	if st.held {
		put(1)
	} else {
		put(0)
	}
	for _, c := range st.children {
		put(c)
	}
	if n, known := s.number[string(key)]; known {
		return n
	}
	if s.closed {
		panic("a state that no policy can reach")
	}
	if st.held {
		st.busy = s.forms[st.form].hosts
	}
	for _, c := range st.children {
		st.busy += s.all[c].busy
	}
	n := len(s.all)
	s.all, s.number[string(key)] = append(s.all, st), n
	s.placed, s.left = append(s.placed, nil), append(s.left, nil)
	return n
}

// empty is the state of a form in which nothing is held.
func (s *states) empty(f int) int {
	if n, known := s.free[f]; known {
		return n
	}
	st := state{form: f}
	for _, c := range s.forms[f].children {
		st.children = append(st.children, s.empty(c))
	}
	n := s.intern(st)
	s.free[f] = n
	return n
}

func (s *states) hold(f int) int { return s.intern(state{form: f, held: true}) }

// with is the state in which one child became another.
func (s *states) with(at, child, became int) int {
	st := state{form: s.all[at].form, children: slices.Clone(s.all[at].children)}
	st.children[child] = became
	return s.intern(st)
}

// place lists the states that one more gang of the class can lead to, in ascending order.
func (s *states) place(at, class int) []int {
	if known, ok := s.placed[at][class]; ok {
		return known
	}
	var out []int
	if f := s.all[at].form; s.forms[f].class == class && at == s.empty(f) {
		out = append(out, s.hold(f))
	}
	before := -1
	for i, child := range s.all[at].children {
		if child == before {
			continue // Its twin leads to the same.
		}
		before = child
		for _, became := range s.place(child, class) {
			out = append(out, s.with(at, i, became))
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if s.placed[at] == nil {
		s.placed[at] = map[int][]int{}
	}
	s.placed[at][class] = out
	return out
}

// leave lists what the end of a gang can lead to.
func (s *states) leave(at int) []departure {
	if s.left[at] != nil {
		return s.left[at]
	}
	out := []departure{}
	if st := s.all[at]; st.held {
		out = append(out, departure{s.empty(st.form), s.forms[st.form].class, 1})
	}
	for i, child := range s.all[at].children {
		for _, d := range s.leave(child) {
			out = append(out, departure{s.with(at, i, d.to), d.class, d.count})
		}
	}
	slices.SortFunc(out, func(a, b departure) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.class, b.class)) })
	n := 0
	for i, d := range out {
		if i > 0 && out[n-1].to == d.to && out[n-1].class == d.class {
			out[n-1].count += d.count
			continue
		}
		out[n] = d
		n++
	}
	s.left[at] = out[:n]
	return s.left[at]
}
