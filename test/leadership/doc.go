// Package leadership holds the tests of pkg/cluster/leadership and of the controller process on a real API server.
package leadership
