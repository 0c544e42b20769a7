package invariants

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	goslices "slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// auditWait is how long the audit log may be behind the watch.
	auditWait = 5 * time.Second
	// auditWrites is how many of the last writes of an object are named.
	auditWrites = 3
)

// attribute fills in the writer.
func (w *Watcher) attribute(b *Breach) {
	if b.offender == nil {
		b.Writer = "nobody: it is what was not written"
		return
	}
	var parts []string
	if b.vanished {
		parts = append(parts, "who removed it leaves no field manager; those of its last version: "+
			entries(b.offender.GetManagedFields()))
	} else {
		parts = append(parts, "field manager "+changedBy(b.before, b.offender))
	}
	if w.options.auditLog != "" {
		lines, err := lastWrites(w.options.auditLog, b.kind, b.offender)
		if err != nil {
			lines = []string{"the audit log cannot be read: " + err.Error()}
		}
		parts = append(parts, "audit: "+strings.Join(lines, "; "))
	}
	b.Writer = strings.Join(parts, "\n           ")
}

// changedBy names the field managers whose entries differ between two versions. A manager whose last field was removed
// by somebody else loses its entry, so what remains or is new is the better witness.
func changedBy(before, after client.Object) string {
	var old []metav1.ManagedFieldsEntry
	if before != nil {
		old = before.GetManagedFields()
	}
	var changed []metav1.ManagedFieldsEntry
	for _, entry := range after.GetManagedFields() {
		if !goslices.ContainsFunc(old, func(o metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(o, entry) }) {
			changed = append(changed, entry)
		}
	}
	if len(changed) > 0 {
		return entries(changed)
	}
	for _, entry := range old {
		if !goslices.ContainsFunc(after.GetManagedFields(), func(o metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(o, entry) }) {
			changed = append(changed, entry)
		}
	}
	if len(changed) > 0 {
		return "unknown, but these lost their fields: " + entries(changed)
	}
	return "unknown: none of " + entries(after.GetManagedFields()) + " changed with this version"
}

func entries(all []metav1.ManagedFieldsEntry) string {
	var texts []string
	for _, entry := range all {
		text := fmt.Sprintf("%q (%s", entry.Manager, entry.Operation)
		if entry.Subresource != "" {
			text += " of " + entry.Subresource
		}
		if entry.Time != nil {
			text += " at " + entry.Time.UTC().Format(time.RFC3339)
		}
		texts = append(texts, text+")")
	}
	if len(texts) == 0 {
		return "nobody"
	}
	return strings.Join(texts, ", ")
}

// restored reports whether the state of a check is Kueue's word and not Berth's. Kueue never makes a check of another
// controller Ready; but its scheduler applies all of a Workload's status that it remembers, without a resourceVersion, and
// so brings a Ready back that Berth has taken in the meantime. Then Berth has lost the field to it.
func restored(workload client.Object, check kueue.AdmissionCheckReference) bool {
	return owns(workload, "kueue-admission", check) && !owns(workload, "berth-gang", check)
}

// owns reports whether a field manager owns the state of a check.
func owns(workload client.Object, manager string, check kueue.AdmissionCheckReference) bool {
	for _, entry := range workload.GetManagedFields() {
		if entry.Manager != manager || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Checks map[string]map[string]any `json:"f:admissionChecks"`
			} `json:"f:status"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, owned := fields.Status.Checks[fmt.Sprintf(`k:{"name":%q}`, check)]["f:state"]; owned {
			return true
		}
	}
	return false
}

// lastWrites returns the last successful writes of an object, the newest first. It gives the log a moment to grow: the
// watch delivers a write before the API server has answered it and so recorded it.
func lastWrites(path string, k kind, obj client.Object) ([]string, error) {
	deadline := time.Now().Add(auditWait)
	var found []string
	for size := int64(-1); ; {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if size >= 0 && time.Now().After(deadline) || info.Size() == size && len(found) > 0 {
			break
		}
		size = info.Size()
		if found, err = scanAudit(path, k, obj); err != nil {
			return nil, err
		}
		time.Sleep(auditWait / 10) // a file cannot be awaited portably
	}
	if len(found) == 0 {
		return []string{"no write of it is recorded"}, nil
	}
	goslices.Reverse(found)
	return found[:min(len(found), auditWrites)], nil
}

func scanAudit(path string, k kind, obj client.Object) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(obj.GetNamespace())) {
			continue // most of a long log, and quick to tell
		}
		var event struct {
			RequestReceivedTimestamp time.Time
			Verb, UserAgent          string
			User, ImpersonatedUser   struct{ Username string }
			ObjectRef                struct{ Resource, Subresource, Namespace, Name, APIGroup string }
			ResponseStatus           struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // the last line, half written
		}
		ref := event.ObjectRef
		switch {
		case ref.Resource != infos[k].resource || ref.APIGroup != infos[k].gvk.Group,
			ref.Namespace != obj.GetNamespace(),
			// A collection has no name; that of an object that is created may still be unknown.
			ref.Name != obj.GetName() && ref.Name != "",
			event.ResponseStatus.Code >= 300,
			goslices.Contains([]string{"get", "list", "watch"}, event.Verb):
			continue
		}
		user := event.User.Username
		if event.ImpersonatedUser.Username != "" {
			user = event.ImpersonatedUser.Username + " (impersonated by " + user + ")"
		}
		what := ref.Resource
		if ref.Subresource != "" {
			what += "/" + ref.Subresource
		}
		found = append(found, fmt.Sprintf("user %s with %s: %s %s at %s", user, event.UserAgent, event.Verb, what,
			event.RequestReceivedTimestamp.UTC().Format(time.RFC3339Nano)))
	}
	return found, lines.Err()
}
