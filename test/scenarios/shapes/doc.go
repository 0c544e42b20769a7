// Package shapes plays on a real control plane what a gang may ask for beside one slice: shares of devices, devices of one
// interconnect domain, several equal slices, and several claims in each pod.
package shapes
