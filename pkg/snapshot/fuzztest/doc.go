// Package fuzztest breaks API objects at places and in ways that a fuzzer's bytes choose, for the fuzz tests of whatever
// reads objects that others have written.
//
// The API server guarantees the types of fields and little else: drivers, users and old releases write the values. A fuzzer
// that changes JSON text mostly makes text that is no JSON; Break changes values and keeps their types.
package fuzztest
