// Package worlds makes hardware of known families for tests, benchmarks and simulations: the 8x8 pool of KEP-4815, cubes
// that combine into larger devices, a torus of cubes whose windows overlap, racks, and small random pools.
//
// Every pool keeps the limits of the resource API (devices and counter sets per slice, counters per set, counter sets per
// device), so that the same world can be published as ResourceSlices. It is part of the functional core.
package worlds
