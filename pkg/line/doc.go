// Package line says whose turn it is: the order in which waiting gangs are offered the hardware, what is kept for those
// that have to wait, and who may use it meanwhile. It is part of the functional core: Pass is a function of its Input.
//
// # Order
//
// Within a ClusterQueue by priority, then by the time since when the gang stands in line; between ClusterQueues by fair
// share, the one that holds the fewest hosts first. A gang that does not fit lets the next one try.
//
// # Targets
//
// The first gang of each ClusterQueue that gets nothing gets a target instead: the devices that drain soonest by the known
// ends of those who hold them. An end that nobody knows comes after all known ones, and the fewer of them the better. A
// gang for which no devices could be free even with everybody gone has none, and the next of its queue may have one.
//
// There is one target per queue, not one in all: a queue whose first gang waits for one pool must not keep another queue's
// from draining a second pool, and a gang that waits for hardware that nobody repairs must not keep everybody from having
// a target. And not one per gang: then nothing behind a large gang could begin, and what is kept idle would grow with the
// length of the line. Targets do not overlap. Where two gangs need the same devices, the one that stands in line for longer
// has them, or rather whose place is the older one (see places), whatever its queue holds: fair share decides who is offered what is free, but a queue that always holds less
// must not take a target away from one that has waited.
//
// A target stays where it is from pass to pass. It goes with its gang, and when hardware that it needs is out of use, when
// a gang before it in its queue takes its place or an older gang of another queue needs a part of it. It moves elsewhere
// only from something foreign or from somebody who outlived its known end by more than Overdue, and only to devices of
// which neither can be said. What is foreign (claims and pods that are no gang's) counts as never ending: devices on which
// it stands are chosen only where there are no others, and such a target is Open: nothing is kept for it, as nobody knows
// for how long.
//
// # Backfill
//
// What is free in a target is offered to others only where the target comes to no harm: a gang is let in if it ends before
// the target is due, or if it has a lower priority and the gang of the target Lends; it is then Lent, and recalled as a
// whole once all that is in the way may be recalled. From then on nobody is let in. What lies outside of all targets is
// preferred. The room that pods use on the hosts of a target is kept like the devices. Who leaves each of several targets
// enough, but not all of them together, is not let in: none of them would recall it.
//
// # No starvation
//
// A gang that can be served with every other gang gone begins after finitely many events, if: finitely many gangs come
// before it in its own queue, gangs that hold devices end, recalled ones too, and nothing foreign comes or stays in its way.
// Only gangs of its own queue with a higher priority, or that stand in line for longer than it or than one of these, come
// before it; how much its queue or others hold does not matter. The reasons: finitely many gangs are older, so once it is first in its queue finitely
// many targets are preferred to its own; while it has one nobody takes part of it who does not end in time or is not
// recalled; so the holders of its target become fewer until none is left.
//
// # Wake-up
//
// Gangs of equal need are asked about once, and a refusal holds from pass to pass until something that it depended on got
// better: see Memory.
package line
