package v1alpha1

import (
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespaceFile is where a pod finds the name of its namespace.
var namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Default is the configuration of an empty file. It is valid.
func Default() BerthConfiguration {
	return BerthConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		LeaderElection: LeaderElection{
			Enabled:       true,
			Namespace:     Namespace(),
			Name:          "berth-controller",
			LeaseDuration: seconds(15),
			RenewDeadline: seconds(10),
			RetryPeriod:   seconds(2),
			WriteTimeout:  seconds(5),
		},
		ClientConnection: ClientConnection{QPS: 200, Burst: 400},
		Health:           Endpoint{BindAddress: ":8081"},
		Metrics:          Endpoint{BindAddress: ":8080"},
		Logging:          Logging{Level: "info", Format: LogJSON},
		Seating:          Seating{Timeout: seconds(300)},
		Reservation:      Reservation{RetryBackoffBase: seconds(1), RetryBackoffMax: seconds(60)},
		Concurrency:      Concurrency{Reservations: 8, Seats: 8},
	}
}

// Namespace is the one that the process runs in, or berth-system outside a cluster.
func Namespace() string {
	content, err := os.ReadFile(namespaceFile)
	if name := strings.TrimSpace(string(content)); err == nil && name != "" {
		return name
	}
	return "berth-system"
}

func seconds(n int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Second}
}
