// Package capacity says how much hardware there is: of a class, or of several classes together, how many devices exist, are
// usable, are free, and how many of the free ones can be held at the same time.
//
// The last is what quota should promise. In a forest it is counted; where windows overlap it is the size of a largest set
// of devices that do not exclude each other, found by branch and bound per connected component. It is part of the
// functional core.
package capacity
