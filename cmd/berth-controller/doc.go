// Command berth-controller is Berth's controller: it reserves whole slices for gangs. See pkg/controllers.
//
// It exits with 0 when it was told to stop (SIGTERM or SIGINT), with 2 when it was called or configured wrongly, and with 1
// when it lost the lease or cannot go on. When it was told to stop it gives the lease up first, unless a write may still take
// effect: then the lease runs out. Run it under something that starts it again.
package main
