package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/snapshot/files"
)

// FuzzRead: whatever a file holds, it is either read or its faults are told, each in one line that names the file; and what
// is read carries names and UIDs.
func FuzzRead(f *testing.F) {
	inputs, err := filepath.Glob("../../../cmd/kubectl-berth/testdata/in/*")
	if err != nil || len(inputs) == 0 {
		f.Fatal("no inputs", err)
	}
	for _, name := range inputs {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, faults := files.Read([]string{files.Stdin}, strings.NewReader(text))
		if (o == nil) != (len(faults) > 0) {
			t.Fatalf("objects %v, faults %v", o != nil, faults)
		}
		for _, fault := range faults {
			if fault.File != files.Stdin || fault.Message == "" {
				t.Errorf("fault %+v", fault)
			}
		}
		if o == nil {
			return
		}
		for _, s := range o.Submitted {
			if s.GetName() == "" || s.GetNamespace() == "" || s.GetUID() == "" {
				t.Errorf("%T %q in %q has UID %q", s, s.GetName(), s.GetNamespace(), s.GetUID())
			}
		}
	})
}
