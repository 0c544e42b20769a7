package controllers

import (
	"testing"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// A slow limiter of the caller's must not pace renewals, nor may the default that client-go puts in place of none.
func TestTheLeaseIsNotLimited(t *testing.T) {
	base := &rest.Config{Host: "https://api.example.com", QPS: 1, Burst: 1, RateLimiter: flowcontrol.NewFakeNeverRateLimiter()}
	connection := leaseConnection(base, 10*time.Second)
	if connection.Timeout != 5*time.Second {
		t.Errorf("a renewal may take %s, want 5s of the 10", connection.Timeout)
	}
	leases, err := coordinationv1client.NewForConfig(connection)
	if err != nil {
		t.Fatal(err)
	}
	limiter := leases.RESTClient().GetRateLimiter()
	for i := range 100 {
		if limiter != nil && !limiter.TryAccept() {
			t.Fatalf("request %d of a burst has to wait for the limit of %v per second", i+1, limiter.QPS())
		}
	}
	if base.QPS != 1 || base.RateLimiter == nil {
		t.Error("the caller's own configuration was changed")
	}
}
