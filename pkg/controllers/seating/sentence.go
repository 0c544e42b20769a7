package seating

import "regexp"

// podName is the quoted name with a random suffix that the Job controller puts into its messages.
var podName = regexp.MustCompile(`((?i)pods?) "[^"]*" `)

// stable removes what differs from one attempt to the next, so that the sentence on the Workload does not change while
// the cause stays the same.
func stable(message string) string { return podName.ReplaceAllString(message, "$1 ") }
