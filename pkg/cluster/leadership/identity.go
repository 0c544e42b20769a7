package leadership

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// NewTerm names one attempt at leadership: <name>_<uid>_<start in milliseconds, base 36>. uid should be the pod's UID;
// if it is empty a random one is made.
//
// Two terms never have the same name, not even in one process: a lease that looks like one's own would be renewed
// without a takeover, and an annotation written twice with one value would not bump a resourceVersion.
func NewTerm(name, uid string, start time.Time) string {
	if uid == "" {
		uid = string(uuid.NewUUID())
	}
	return name + "_" + uid + "_" + strconv.FormatInt(start.UnixMilli(), 36)
}
