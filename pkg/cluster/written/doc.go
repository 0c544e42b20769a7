// Package written is a client that reads its own writes.
//
// A controller that reads from informers sees its own writes late. Acting on such a view repeats steps at best; at worst
// it gives the same device out twice. This client remembers what the API server answered to each write and lays it over
// the informer's view until the informer has caught up. Everything else stays as late as informers are.
package written
