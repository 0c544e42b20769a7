// Package line runs the passes: whenever something changes that can help a waiting gang, it gathers one view of the whole
// cluster, offers the hardware to every waiting gang in turn, and writes the decisions down as GangReservations.
//
// There is one pass at a time and one process that runs passes. That is what makes a decision final: what one gang got is
// charged before the next is asked, and this client sees its own writes.
package line
