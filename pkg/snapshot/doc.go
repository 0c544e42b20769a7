// Package snapshot is one view of the API objects that Berth decides on. Controller, CLI, dump and tests all enter here;
// nothing below this package knows where the objects came from.
package snapshot
