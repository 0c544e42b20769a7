// Package witness says what the API server shows: it reads everything at one moment and judges that reading.
//
// The judgements are pure functions of an Observation. They share no code with Berth except the API types, so that a
// mistake of Berth's cannot hide itself.
package witness
