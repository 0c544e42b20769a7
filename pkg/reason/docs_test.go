package reason

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	declared := codes(t)
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

// codes are the values of all constants of type Code.
func codes(t *testing.T) []string {
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
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
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
		t.Fatal("no constant of type Code was found")
	}
	return values
}
