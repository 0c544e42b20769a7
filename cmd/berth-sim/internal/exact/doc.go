// Package exact computes the best placement policy of a small world, and what it achieves.
//
// The model is a Markov decision process in continuous time. Gangs of class c come as a Poisson stream of rate λ(c), stay for
// an exponential time of mean 1/μ(c), and are lost when no device of their class is free. A policy decides on which free
// device a gang goes; it may not turn a gang away that has a place (it is non-idling), knows the model, and does not know how
// long a gang will stay. It earns one host-hour for each host and hour that is held. The best policy earns most in the long
// run; divided by the hosts that is its goodput, for everything that is begun is also completed.
//
// The pools must be forests. A state says of each device whether it is held, up to symmetry: two subtrees of the same form
// may change places. A binary tree of 16 hosts with devices of 1, 2, 4 and 8 hosts has 2,278 states. The process is made one
// of discrete steps by uniformisation, and solved by relative value iteration; after each step the least and the greatest
// change of value bound the goodput of the best policy from below and above (Odoni 1969; Puterman, Markov Decision
// Processes, 8.5).
package exact
