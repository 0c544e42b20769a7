package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/cmd/internal/release"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	head := "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\n"
	bad := write("bad.yaml", head+"seating: {timeout: 0s}\nlogging: {format: xml}\n")
	kubeconfig := write("kubeconfig", `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]}`)

	for name, test := range map[string]struct {
		args   []string
		code   int
		output string
	}{
		"version":            {[]string{"--version"}, exitOK, release.Version() + "\n"},
		"help":               {[]string{"--help"}, exitOK, "--kubeconfig"},
		"unknown flag":       {[]string{"--fast"}, exitUsage, "unknown flag: --fast"},
		"argument":           {[]string{"now"}, exitUsage, `unknown command "now"`},
		"no such file":       {[]string{"--config", dir + "/none"}, exitUsage, "no such file"},
		"all faults":         {[]string{"--config", bad}, exitUsage, bad + ":3: seating.timeout: "},
		"all faults, second": {[]string{"--config", bad}, exitUsage, bad + ":4: logging.format: "},
		"not in a pod":       {nil, exitUsage, "--kubeconfig"},
		"no API server":      {[]string{"--kubeconfig", kubeconfig}, exitFailed, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			var output bytes.Buffer
			if code := run(t.Context(), test.args, &output, &output); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(output.String(), test.output) {
				t.Errorf("output %q lacks %q", output.String(), test.output)
			}
		})
	}
}
