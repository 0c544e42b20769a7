// Package ledger is what is taken: counters and devices held by ResourceClaims, by reservations on their way, by
// quarantined shares, and the room that pods use on hosts.
//
// Whatever is booked can be taken back: Take and Give, Quarantine and Lift, Use and Leave undo each other, in any order.
// What a Ledger says depends only on what is booked now, not on how it came to be. Each costs as much as it touches: the
// counters of a device and the devices that are short of them, the pods of one host.
//
// Clone costs nothing: the two share everything, and whoever writes first copies the pool or host that it writes to. So a
// what-if of a whole pass, and a world without some gang, are clones. Try is the cheaper what-if of a single gang.
//
// It is part of the functional core.
package ledger
