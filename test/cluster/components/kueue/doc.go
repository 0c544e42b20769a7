// Command kueue runs the pinned Kueue release outside a cluster.
//
// It exists because the release's own command serves metrics over TLS with a certificate from a fixed path under /etc,
// which a test must not write to. This one puts the same packages together and serves metrics in plain HTTP, or, with
// metrics.bindAddress "0", not at all.
//
// Everything a Workload meets is there: core and topology controllers, webhooks with conversion, all job integrations
// that the configuration names, the scheduler, and device class mappings. Left out are MultiKueue, ProvisioningRequest,
// the visibility API server and Kueue's own certificate management: webhook.certDir must hold tls.crt and tls.key.
package main
