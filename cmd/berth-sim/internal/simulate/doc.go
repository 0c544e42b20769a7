// Package simulate runs gangs over hardware, event by event, with Berth's own ledger, line and placement.
//
// The clock is virtual: hours since the beginning. Nothing depends on anything but the arguments, so a run can be repeated.
// A gang that begins stays for the time that the trace says and then gives its device back.
package simulate
