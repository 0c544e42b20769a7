package worlds

import (
	"fmt"
	"math/rand/v2"

	"github.com/berth-dev/berth/pkg/inventory"
)

// hostsPerCube of 4x4x4 chips with four chips a host.
const hostsPerCube = 16

// KEP8x8 is the pool that KEP-4815 uses as its example: 16 hosts, as 2x2 (one host each), 4x4, 4x8 and 8x8.
func KEP8x8(pool string) *Site {
	b := newBuilder(pool)
	var hosts []string
	for i := range 16 {
		hosts = append(hosts, b.host(i))
		b.counter("hosts", fmt.Sprint("h", i), 4)
	}
	for _, shape := range []struct {
		class string
		span  int
	}{{"tpu-2x2", 1}, {"tpu-4x4", 4}, {"tpu-4x8", 8}, {"tpu-8x8", 16}} {
		for from := 0; from < len(hosts); from += shape.span {
			var consumes []inventory.Charge
			for h := from; h < from+shape.span; h++ {
				consumes = append(consumes, units("hosts", fmt.Sprint("h", h), 4))
			}
			b.device(shape.class, fmt.Sprintf("%s-%d", shape.class, from), hosts[from:from+shape.span], consumes)
		}
	}
	return b.done()
}

// Rack is 18 hosts (an NVL72) as aligned groups of 1, 2, 4, 8 and 16 and as a whole.
func Rack(pool string) *Site {
	b := newBuilder(pool)
	var hosts []string
	for i := range 18 {
		hosts = append(hosts, b.host(i))
		b.counter("trays", fmt.Sprint("t", i), 4)
	}
	for _, span := range []int{1, 2, 4, 8, 16, 18} {
		for from := 0; from+span <= len(hosts); from += span {
			var consumes []inventory.Charge
			for h := from; h < from+span; h++ {
				consumes = append(consumes, units("trays", fmt.Sprint("t", h), 4))
			}
			b.device(fmt.Sprint("gpu-", 4*span), fmt.Sprintf("g%d-%d", span, from), hosts[from:from+span], consumes)
		}
	}
	return b.done()
}

// cube adds the hosts and the inner devices of a cube: halves, quarters, eighths and single hosts. They consume host
// counters and a share of the cube's counter; the API lets a device use two counter sets, so whatever consists of several
// cubes consumes cube counters only.
func (b *builder) cube(c int, cubes string) []string {
	set := fmt.Sprint("cube-", c)
	whole := fmt.Sprint("c", c)
	b.counter(cubes, whole, hostsPerCube)
	var hosts []string
	for h := range hostsPerCube {
		hosts = append(hosts, b.host(c*hostsPerCube+h))
		b.counter(set, fmt.Sprint("h", h), 1)
	}
	for span := 1; span <= hostsPerCube; span *= 2 {
		for from := 0; from < hostsPerCube; from += span {
			consumes := []inventory.Charge{units(cubes, whole, int64(span))}
			for h := from; h < from+span; h++ {
				consumes = append(consumes, units(set, fmt.Sprint("h", h), 1))
			}
			b.device(fmt.Sprint("v5p-", span), fmt.Sprintf("c%d-%d-%d", c, span, from), hosts[from:from+span], consumes)
		}
	}
	return hosts
}

// Cubes is a pool of cubes that combine in aligned pairs, fours, eights and sixteens: a forest. With 140 cubes it has
// 2,240 hosts and 4,470 devices in 89 slices.
func Cubes(cubes int) func(pool string) *Site {
	return func(pool string) *Site {
		b := newBuilder(pool)
		set := func(c int) string { return fmt.Sprint("cubes-", c/32) }
		var hosts [][]string
		for c := range cubes {
			hosts = append(hosts, b.cube(c, set(c)))
		}
		for n := 2; n <= 16; n *= 2 {
			for from := 0; from+n <= cubes; from += n {
				var on []string
				var consumes []inventory.Charge
				for c := from; c < from+n; c++ {
					on = append(on, hosts[c]...)
					consumes = append(consumes, units(set(c), fmt.Sprint("c", c), hostsPerCube))
				}
				b.device(fmt.Sprint("v5p-", n*hostsPerCube), fmt.Sprintf("m%d-%d", n, from), on, consumes)
			}
		}
		return b.done()
	}
}

// Extent is the size of a window in cubes.
type Extent struct{ X, Y, Z int }

// V5pWindows are the windows of Torus: powers of two, and some that fill a dimension. None is deeper than two cubes: the
// counters of a plane are one counter set, and a device may use two.
var V5pWindows = []Extent{
	{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {3, 1, 1},
	{2, 2, 1}, {2, 1, 2}, {1, 2, 2}, {4, 1, 1}, {1, 4, 1},
	{2, 2, 2}, {4, 2, 1}, {4, 1, 2}, {2, 4, 1}, {1, 4, 2}, {2, 5, 1},
	{4, 4, 1}, {4, 2, 2}, {2, 4, 2}, {4, 5, 1}, {2, 5, 2},
	{4, 4, 2}, {4, 5, 2},
}

// Torus is a v5p pod as 4 by 5 by 7 cubes that are connected around every edge. Windows may begin anywhere, so they
// overlap: 6,300 devices.
func Torus(pool string) *Site { return Windows(pool, Extent{4, 5, 7}, V5pWindows) }

// Windows is a torus of cubes of any size with the given windows.
func Windows(pool string, size Extent, windows []Extent) *Site {
	b := newBuilder(pool)
	plane := func(z int) string { return fmt.Sprint("plane-", z) }
	at := func(x, y, z int) int { return (z*size.Y+y)*size.X + x }
	hosts := make([][]string, size.X*size.Y*size.Z)
	for c := range hosts {
		hosts[c] = b.cube(c, plane(c/(size.X*size.Y)))
	}
	// A window that fills a dimension has one place along it.
	places := func(window, size int) int {
		if window >= size {
			return 1
		}
		return size
	}
	for _, w := range windows {
		for z := range places(w.Z, size.Z) {
			for y := range places(w.Y, size.Y) {
				for x := range places(w.X, size.X) {
					var on []string
					var consumes []inventory.Charge
					for i := range w.X * w.Y * w.Z {
						cx, cy, cz := (x+i%w.X)%size.X, (y+i/w.X%w.Y)%size.Y, (z+i/(w.X*w.Y))%size.Z
						c := at(cx, cy, cz)
						on = append(on, hosts[c]...)
						consumes = append(consumes, units(plane(cz), fmt.Sprint("c", c), hostsPerCube))
					}
					b.device(fmt.Sprint("v5p-", len(on)), fmt.Sprintf("w%dx%dx%d-%d-%d-%d", w.X, w.Y, w.Z, x, y, z), on, consumes)
				}
			}
		}
	}
	return b.done()
}

// Groups is a pool with a device for each group of host numbers. Devices exclude each other where groups meet. The class
// of a device is "n" and its number of hosts.
func Groups(pool string, hosts int, groups [][]int) *Site {
	b := newBuilder(pool)
	var names []string
	for i := range hosts {
		names = append(names, b.host(i))
		b.counter(fmt.Sprint("hosts-", i/32), fmt.Sprint("h", i), 1)
	}
	for i, group := range groups {
		var on []string
		var consumes []inventory.Charge
		for _, h := range group {
			on = append(on, names[h])
			consumes = append(consumes, units(fmt.Sprint("hosts-", h/32), fmt.Sprint("h", h), 1))
		}
		b.device(fmt.Sprint("n", len(group)), fmt.Sprint("d", i), on, consumes)
	}
	return b.done()
}

// Random is a small pool of windows on a ring of hosts: overlapping, some of them twins, some on half a host, one in
// eight without counters.
func Random(rng *rand.Rand, pool string, hosts, devices int) *Site {
	b := newBuilder(pool)
	var names []string
	for i := range hosts {
		names = append(names, b.host(i))
		b.counter("hosts", fmt.Sprint("h", i), 4)
	}
	for i := range devices {
		from, span := rng.IntN(hosts), 1+rng.IntN(hosts)
		each := int64(1 + rng.IntN(4))
		var on []string
		var consumes []inventory.Charge
		for k := range span {
			h := (from + k) % hosts
			on = append(on, names[h])
			consumes = append(consumes, units("hosts", fmt.Sprint("h", h), each))
		}
		if rng.IntN(8) == 0 {
			consumes = nil
		}
		b.device(fmt.Sprint("n", span), fmt.Sprint("d", i), on, consumes)
	}
	return b.done()
}

// Mixed is a small pool of hosts with several devices each, which consume parts of the host's counter or nothing, some of them
// shared, beside some windows of two or three hosts.
func Mixed(rng *rand.Rand, pool string, hosts int) *Site {
	b := newBuilder(pool)
	var names []string
	for i := range hosts {
		names = append(names, b.host(i))
		b.counter("hosts", fmt.Sprint("h", i), 4)
	}
	n := 0
	add := func(span, from int, each int64) {
		var on []string
		var consumes []inventory.Charge
		for k := range span {
			h := (from + k) % hosts
			on = append(on, names[h])
			if each > 0 {
				consumes = append(consumes, units("hosts", fmt.Sprint("h", h), each))
			}
		}
		b.device(fmt.Sprint("n", span), fmt.Sprint("d", n), on, consumes)
		n++
	}
	for h := range hosts {
		for range 1 + rng.IntN(4) {
			add(1, h, int64(rng.IntN(4)))
			if rng.IntN(5) == 0 {
				d := &b.devices[len(b.devices)-1]
				d.Shared, d.Capacity = true, []inventory.Capacity{{Name: "mem", Milli: 4000}}
			}
		}
	}
	for range rng.IntN(3) {
		add(min(2+rng.IntN(2), hosts), rng.IntN(hosts), int64(1+rng.IntN(4)))
	}
	return b.done()
}

// GPURacks is a fleet of a node-local driver: racks of hosts, each host a pool of its own with single GPUs that consume no
// counter, and the racks the domains of the interconnect. An NVL72 is 18 hosts of four.
func GPURacks(racks, hosts, gpus int) *Site {
	all := &Site{}
	rack := map[string]string{}
	for r := range racks {
		for h := range hosts {
			pool := fmt.Sprintf("r%d-n%d", r, h)
			b := newBuilder(pool)
			name := b.host(0)
			rack[name] = fmt.Sprint("rack-", r)
			for g := range gpus {
				b.device("gpu", fmt.Sprint("gpu-", g), []string{name}, nil)
			}
			all.Add(b.done())
		}
	}
	return all.Tie("example.com/rack", func(d *inventory.Device) string { return rack[d.Hosts[0]] })
}
