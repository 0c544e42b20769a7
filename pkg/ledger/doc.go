// Package ledger is what is taken: counters and devices held by ResourceClaims, by reservations on their way, by
// quarantined shares, and the room that pods use on hosts.
//
// It is part of the functional core.
package ledger
