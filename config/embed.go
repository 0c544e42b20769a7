package config

import "embed"

// Files holds the folders crd, policy and rbac as they are in the repository.
//
//go:embed crd/berth.dev_*.yaml policy/*.yaml rbac/*.yaml
var Files embed.FS
