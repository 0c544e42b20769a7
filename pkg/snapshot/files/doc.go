// Package files reads a snapshot from YAML and JSON files, without a cluster.
//
// Reading is strict, because a misspelled field would otherwise change the answer in silence: every unknown field, wrong
// type, double and missing name is a Fault with file, document and field, and Read returns all of them at once. Only of
// objects that an API server has served are unknown fields warned of instead: it is newer. Objects come out as an API server
// would serve them, as far as a file can tell; see complete.
package files
