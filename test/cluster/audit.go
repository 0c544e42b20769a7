package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const auditLog = "audit.log"

// Requests that only read would make up nearly all of the log; what the first stage knows, the last one knows too.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// Write is one request that changed, or tried to change, an object.
type Write struct {
	Time time.Time
	// User who authenticated, and the user it acted as, if another.
	User, As  string
	UserAgent string
	Verb      string
	// Resource in the plural, with the subresource behind a slash, such as "resourceclaims/status".
	Resource, APIGroup, Namespace, Name string
	// Code is the HTTP status of the answer.
	Code int
}

// AuditLog is the file that records the writes, in JSON lines of audit.k8s.io/v1; empty without Options.Audit.
func (c *Cluster) AuditLog() string {
	if !c.options.Audit {
		return ""
	}
	return c.path(auditLog)
}

// Writes returns, in order, the writes the API server has recorded that match keep; nil keeps all. The cluster must
// have been started with Options.Audit. A request is recorded before its answer is sent, so a caller finds its own.
func (c *Cluster) Writes(ctx context.Context, keep func(Write) bool) ([]Write, error) {
	if !c.options.Audit {
		return nil, fmt.Errorf("the cluster was started without Options.Audit")
	}
	file, err := os.Open(c.path(auditLog))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var writes []Write
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	lines.Split(endedLines)
	for lines.Scan() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		write, err := parseWrite(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if keep == nil || keep(write) {
			writes = append(writes, write)
		}
	}
	return writes, lines.Err()
}

// endedLines is bufio.ScanLines without a last line that has no end: the API server is still writing that one, and has not
// answered the request yet.
func endedLines(data []byte, _ bool) (advance int, line []byte, _ error) {
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		return 0, nil, nil
	}
	return end + 1, data[:end], nil
}

func parseWrite(line []byte) (Write, error) {
	var event struct {
		RequestReceivedTimestamp time.Time
		Verb, UserAgent          string
		User, ImpersonatedUser   struct{ Username string }
		ObjectRef                struct{ Resource, Subresource, Namespace, Name, APIGroup string }
		ResponseStatus           struct{ Code int }
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Write{}, err
	}
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	return Write{
		Time: event.RequestReceivedTimestamp,
		User: event.User.Username, As: event.ImpersonatedUser.Username, UserAgent: event.UserAgent,
		Verb: event.Verb, Resource: resource, APIGroup: event.ObjectRef.APIGroup,
		Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name, Code: event.ResponseStatus.Code,
	}, nil
}
