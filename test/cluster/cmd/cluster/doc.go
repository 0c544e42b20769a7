// Command cluster keeps a development cluster running on the loopback interface.
//
//	cluster build   builds the components that the cache lacks
//	cluster up      starts a cluster in the background and prints how to reach it
//	cluster down    stops exactly what up started
//
// A supervisor process owns the cluster's programs: it is what up leaves running, and when it dies they die.
// Everything is kept under .cache/cluster of the repository; up after down starts from nothing.
package main
