package reason

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryCodeIsDocumented holds the constants against docs/reasons.md, both ways.
func TestEveryCodeIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllSubmatch(raw, -1) {
		documented = append(documented, string(m[1]))
	}
	declared := constants(t, "Code")
	for _, code := range declared {
		if !slices.Contains(documented, code) {
			t.Errorf("docs/reasons.md lacks %s", code)
		}
	}
	for _, code := range documented {
		if !slices.Contains(declared, code) {
			t.Errorf("docs/reasons.md explains %s, which does not exist", code)
		}
	}
	slices.Sort(documented)
	if twice := len(documented) - len(slices.Compact(slices.Clone(documented))); twice != 0 {
		t.Errorf("docs/reasons.md explains %d reasons twice", twice)
	}
}

// TestEveryCodeIsGiven: nothing explains a reason that nobody gives.
func TestEveryCodeIsGiven(t *testing.T) {
	given := map[string]bool{}
	use := regexp.MustCompile(`\breason\.([A-Z]\w+)\b`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range use.FindAllSubmatch(content, -1) {
			given[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range constants(t, "Code") {
		if !given[code] {
			t.Errorf("nobody gives the reason %s", code)
		}
	}
}

// TestEveryKindIsDocumented holds the kinds of evidence against docs/cli.md.
func TestEveryKindIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `workloads\\[\\]\\.evidence\\[\\]\\.kind` \\| string \\| (.*) \\|$").FindSubmatch(raw)
	if row == nil {
		t.Fatal("docs/cli.md does not list the kinds")
	}
	var documented []string
	for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllSubmatch(row[1], -1) {
		documented = append(documented, string(m[1]))
	}
	if declared := constants(t, "Kind"); !slices.Equal(documented, declared) {
		t.Errorf("docs/cli.md lists %q, there are %q", documented, declared)
	}
}

// constants are the values of all constants of a type, as they stand in reason.go.
func constants(t *testing.T, of string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != of {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("no constant of type %s was found", of)
	}
	return values
}
