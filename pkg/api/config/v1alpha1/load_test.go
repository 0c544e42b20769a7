package v1alpha1

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\n"

func TestDefaultIsValid(t *testing.T) {
	c := Default()
	if faults := c.Validate(); len(faults) > 0 {
		t.Error(faults.ToAggregate())
	}
	got, err := parse("config.yaml", []byte(head))
	if err != nil || got != c {
		t.Errorf("a file without settings: %v\n%s", err, cmp.Diff(c, got))
	}
}

// The file that is installed states every default, so that it documents them.
func TestInstalledFileIsTheDefault(t *testing.T) {
	got, err := Load("../../../../config/config/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got != Default() {
		t.Error(cmp.Diff(Default(), got))
	}
	content, err := os.ReadFile("../../../../config/config/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"writeTimeout", "retryBackoffMax", "seats", "burst", "format"} {
		if !strings.Contains(string(content), name+":") {
			t.Errorf("%s is not stated", name)
		}
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	content := head + `
leaderElection:
  enabled: false
  leaseDuration: 30s
metrics: {bindAddress: 0}
health: {bindAddress: "127.0.0.1:9000"}
logging: {level: 4, format: console}
clientConnection: {qps: 12.5, burst: 20}
seating:
  timeout:
concurrency:
  seats: 32
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.LeaderElection.Enabled = false
	want.LeaderElection.LeaseDuration.Duration = 30 * time.Second
	want.Metrics.BindAddress = Off
	want.Health.BindAddress = "127.0.0.1:9000"
	want.Logging = Logging{Level: "4", Format: LogConsole}
	want.ClientConnection = ClientConnection{QPS: 12.5, Burst: 20}
	want.Concurrency.Seats = 32
	if got != want {
		t.Error(cmp.Diff(want, got))
	}

	if _, err := Load(file + ".missing"); !os.IsNotExist(unwrap(err)) {
		t.Errorf("got %v", err)
	}
}

func unwrap(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return err
}

func TestFaultsAreReportedAtOnce(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"fields that cannot be read": {
			content: head + `
leaderElection:
  leaseDuration: soon
  renewDeadlin: 10s
  enabled: perhaps
clientConnection:
  qps: many
  burst: 1.5
concurrency: 8
seating:
  timeout: 5
metrics: {bindAddress: [a]}
health: {bindAddress: true}
health: {}
`,
			want: `
config.yaml:5: leaderElection.leaseDuration: must be a duration such as 1m30s, not "soon"
config.yaml:6: leaderElection.renewDeadlin: unknown field
config.yaml:7: leaderElection.enabled: must be true or false, not "perhaps"
config.yaml:9: clientConnection.qps: must be a number, not "many"
config.yaml:10: clientConnection.burst: must be a whole number, not "1.5"
config.yaml:11: concurrency: must hold fields, not "8"
config.yaml:13: seating.timeout: must be a duration such as 1m30s, not "5"
config.yaml:14: metrics.bindAddress: must be a string, not a list
config.yaml:15: health.bindAddress: must be a string, not "true"
config.yaml:16: health: was already set in line 15`,
		},
		"values that make no sense": {
			content: head + `
leaderElection:
  renewDeadline: 12s
  retryPeriod: 10s
  name: Berth!
clientConnection: {qps: 0, burst: 0}
health: {bindAddress: "8081"}
logging:
  level: loud
  format: xml
seating: {timeout: 25h}
reservation: {retryBackoffBase: 2m}
concurrency: {reservations: 0}
`,
			want: `
config.yaml:7: leaderElection.name: Invalid value: "Berth!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
config.yaml:4: leaderElection.leaseDuration: Invalid value: "15s": must be at least renewDeadline + writeTimeout (12s + 5s = 17s)
config.yaml:5: leaderElection.renewDeadline: Invalid value: "12s": must exceed 1.2 times retryPeriod (12s)
config.yaml:8: clientConnection.qps: Invalid value: "0": must be above 0
config.yaml:8: clientConnection.burst: Invalid value: 0: must be at least 1
config.yaml:9: health.bindAddress: Invalid value: "8081": must be [host]:port with a port from 0 to 65535, or "0" for no endpoint
config.yaml:11: logging.level: Invalid value: "loud": must be error, info, debug or a number from 0 to 10
config.yaml:12: logging.format: Unsupported value: "xml": supported values: "json", "console"
config.yaml:13: seating.timeout: Invalid value: "25h0m0s": must be between 1s and 24h
config.yaml:14: reservation.retryBackoffMax: Invalid value: "1m0s": must be at least retryBackoffBase (2m0s)
config.yaml:15: concurrency.reservations: Invalid value: 0: must be between 1 and 256`,
		},
		"a lease with a fraction of a second": {
			content: head + "leaderElection: {leaseDuration: 15500ms}\n",
			want:    `config.yaml:3: leaderElection.leaseDuration: Invalid value: "15.5s": must be whole seconds, because a Lease counts in seconds`,
		},
		"another kind": {
			content: "apiVersion: config.berth.dev/v1\nkind: Config\n",
			want: `
config.yaml:1: apiVersion: Unsupported value: "config.berth.dev/v1": supported values: "config.berth.dev/v1alpha1"
config.yaml:2: kind: Unsupported value: "Config": supported values: "BerthConfiguration"`,
		},
		"one address twice": {
			content: head + "metrics: {bindAddress: \":8081\"}\n",
			want:    `config.yaml:3: metrics.bindAddress: Invalid value: ":8081": is the address of health, too`,
		},
		"empty":         {content: "\n", want: "config.yaml: the file is empty; it needs apiVersion: config.berth.dev/v1alpha1 and kind: BerthConfiguration"},
		"a list":        {content: "- a\n", want: "config.yaml:1: must hold fields, not a list"},
		"two documents": {content: head + "---\nkind: X\n", want: "config.yaml:3: the file holds more than one document"},
		"no YAML":       {content: "kind: [\n", want: "config.yaml: line 1: did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("config.yaml", []byte(test.content))
			if err == nil {
				t.Fatal("no fault was found")
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	defer func(before string) { namespaceFile = before }(namespaceFile)
	namespaceFile = filepath.Join(t.TempDir(), "namespace")
	if got := Namespace(); got != "berth-system" || Default().LeaderElection.Namespace != got {
		t.Errorf("outside a cluster: %q", got)
	}
	if err := os.WriteFile(namespaceFile, []byte("accelerators\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Namespace(); got != "accelerators" || Default().LeaderElection.Namespace != got {
		t.Errorf("in a pod: %q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "seating: {timeout: 5m}\n"))
	f.Add([]byte("a: &a {b: *a}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		config, err := parse("config.yaml", content)
		if err == nil && len(config.Validate()) > 0 {
			t.Error("an invalid configuration was accepted")
		}
	})
}
