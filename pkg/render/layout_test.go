package render

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/ledger"
)

// poolOf publishes devices over hosts h0, h1 and so on; nothing keeps them apart.
func poolOf(devices ...[]int) *inventory.Pool {
	id := inventory.PoolID{Driver: "d.example.com", Name: "p"}
	s := inventory.Published{Name: "s", Pool: id, SliceCount: 1}
	for i, hosts := range devices {
		d := inventory.PublishedDevice{Device: inventory.Device{Name: fmt.Sprintf("dev-%d", i)}}
		for _, h := range hosts {
			d.Hosts = append(d.Hosts, fmt.Sprintf("h%d", h))
		}
		s.Devices = append(s.Devices, d)
	}
	return inventory.NewPool(id, []inventory.Published{s})
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestColumns: shapes give positions where they can be told from runs of neighbours.
func TestColumns(t *testing.T) {
	for name, row := range map[string]struct {
		devices [][]int
		want    int
	}{
		"nothing":                   {nil, 0},
		"single hosts":              {[][]int{{0}, {1}, {2}, {3}}, 0},
		"one rack":                  {[][]int{upTo(18)}, 0},
		"runs only":                 {[][]int{upTo(8), {0, 1}, {2, 3}, {4, 5, 6, 7}}, 0},
		"2x2 blocks in 4x4":         {[][]int{upTo(16), {0, 1, 4, 5}, {2, 3, 6, 7}}, 4},
		"2x2 blocks in 2 rows of 8": {[][]int{upTo(16), {0, 1, 8, 9}}, 8},
		"columns":                   {[][]int{upTo(6), {0, 3}}, 3},
		"around the edge":           {[][]int{upTo(16), {0, 3, 4, 7}, {1, 2, 5, 6}}, 4},
		"no rectangle":              {[][]int{upTo(16), {0, 1, 4, 5}, {0, 5, 10, 15}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := layoutOf(poolOf(row.devices...)).columns; got != row.want {
				t.Errorf("%d columns, want %d", got, row.want)
			}
		})
	}
}

// TestDomains: hosts that no device ties together stand apart, and holders are seen on their hosts.
func TestDomains(t *testing.T) {
	p := poolOf([]int{0, 1, 2}, []int{3, 4, 5}, []int{0}, []int{6})
	inv := inventory.Build(inventory.Input{Pools: []*inventory.Pool{p}, Hosts: []inventory.Host{
		{Name: "h0"}, {Name: "h1"}, {Name: "h2"}, {Name: "h3"}, {Name: "h4"}, {Name: "h5"},
	}})
	p.Problem = nil // Devices without counters on the same host look like a gate that is off; here they are meant.
	l := ledger.New(inv)
	l.Take(ledger.Holding{Owner: "ns/two", Reservation: "2", Pool: p.ID, Device: "dev-1"})
	l.Take(ledger.Holding{Owner: "ns/one", Reservation: "1", Pool: p.ID, Device: "dev-2"})
	l.Take(ledger.Holding{Owner: "ns/three", Reservation: "3", Pool: p.ID, Device: "dev-2"})
	l.Quarantine(p.ID, "h1")
	want := `driver d.example.com
  pool p, domain 1: h0 a+b!   h1 ?      h2 .
  pool p, domain 2: h3 c   h4 c   h5 c
  pool p, domain 3: h6 x

. free   a held by holder a   ! overdrawn   ? quarantined   x unusable
a  ns/one: p/dev-2
b  ns/three: p/dev-2
c  ns/two: p/dev-1
`
	if diff := cmp.Diff(want, NewMapReport(inv, l, nil, nil).Text(false)); diff != "" {
		t.Error(diff)
	}
}

// TestRacks: pools of one host stand in the domains of their interconnect, those that are in none by themselves, and
// holders are seen in both.
func TestRacks(t *testing.T) {
	var pools []*inventory.Pool
	var hosts []inventory.Host
	publish := func(pool, host string, racks ...string) {
		id := inventory.PoolID{Driver: "d.example.com", Name: pool}
		s := inventory.Published{Name: "s", Pool: id, SliceCount: 1}
		for i, rack := range racks {
			s.Devices = append(s.Devices, inventory.PublishedDevice{Device: inventory.Device{
				Name: fmt.Sprintf("gpu-%d", i), Hosts: []string{host}, Domain: inventory.Domain{By: "label example.com/rack", Value: rack},
			}})
		}
		pools = append(pools, inventory.NewPool(id, []inventory.Published{s}))
		hosts = append(hosts, inventory.Host{Name: host})
	}
	publish("h1", "h1", "r10", "r10")
	publish("h2", "h2", "r2", "r2")
	publish("h3", "h3", "r10", "r10")
	publish("called-otherwise", "h4", "r2")
	publish("none", "h5", "", "")
	publish("torn", "h6", "r2", "r10")
	inv := inventory.Build(inventory.Input{Pools: pools, Hosts: hosts})
	l := ledger.New(inv)
	l.Take(ledger.Holding{Owner: "ns/one", Reservation: "1", Pool: pools[2].ID, Device: "gpu-1"})
	want := `driver d.example.com
  rack r2: h2                    . 2/2 free   h4 (called-otherwise) . 1/1 free
  rack r10: h1 . 2/2 free   h3 a 1/2 free
  pool none: h5 . 2/2 free
  pool torn: h6 . 2/2 free

. free   a held by holder a   ! overdrawn   ? quarantined   x unusable
a  ns/one: h3/gpu-1
`
	if diff := cmp.Diff(want, NewMapReport(inv, l, nil, nil).Text(false)); diff != "" {
		t.Error(diff)
	}
}

// TestLetters never runs out.
func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "a", 25: "z", 26: "aa", 51: "az", 52: "ba", 701: "zz", 702: "aaa"} {
		if got := letter(i); got != want {
			t.Errorf("holder %d is %s, want %s", i, got, want)
		}
	}
}
