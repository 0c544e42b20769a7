// Package render is how decisions and hardware look: sentences, maps, tables and JSON, the same for the command line, logs
// and tests. It is part of the functional core: reports are plain structs, made from core types by pure functions, and
// writing them somewhere is left to the caller.
//
// The JSON of FitReport, CapacityReport and MapReport is a contract of its own, version cli.berth.dev/v1: docs/cli.md
// explains every field, and a test holds the two together. Fields may be added to v1; none changes its meaning or goes.
package render
