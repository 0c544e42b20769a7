// Package faults breaks the ground under a controller at a chosen place: at one write, between a write and its answer,
// or in what its watches tell it.
//
// Four tools, from the inside out:
//
//   - [Wrap] puts a [Plan] between a controller and its client. A first run with an empty plan records every write as a
//     [Site] such as "update resourceclaims/status#2"; a second run has a [Fault] at one of them. After a fault has
//     fired the client is frozen, which is what the rest of the world sees of a process that died there.
//   - [Wire] is the connection of a process that dies: once it is cut nothing comes through, lease renewals included.
//   - [Lag] delays the watches of a rest.Config, so that a controller decides on a past that is long gone for others.
//   - [Proxy] stands between the API server and a controller that is a process of its own. It can stop the process
//     with SIGSTOP while one of its writes is on the way, and deliver that write after somebody else has taken over.
//
// Nothing here pauses for a length of time: everything is held until it is released, or until the test ends.
package faults
