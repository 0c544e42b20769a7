// Package reason is the closed list of reasons that Berth gives, with the evidence behind each.
//
// It is part of the functional core: plain data, no clock, no client. Whoever decides something returns a Refusal;
// whoever talks to people renders it.
package reason
