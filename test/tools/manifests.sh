#!/usr/bin/env bash
# manifests.sh derives the two ways to install Berth from the manifests below config/, the only place where they are
# written by hand: the list of resources in config/kustomization.yaml, and the copies in charts/berth.
#
# The copies are verbatim, one folder for each of config/'s; the chart's one template puts the release's namespace, the
# image and the other values into them. So the chart cannot drift, and a reader can compare it with diff -r.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/../.."

chart=charts/berth

# The controller's configuration, as it is mounted.
{
	cat <<-'HEAD'
		# Written by `make generate` from config/config/config.yaml.
		apiVersion: v1
		kind: ConfigMap
		metadata:
		  name: berth-controller
		  namespace: berth-system
		  labels:
		    app.kubernetes.io/name: berth
		    app.kubernetes.io/component: controller
		data:
		  config.yaml: |
	HEAD
	sed 's/^./    &/' config/config/config.yaml
} >config/manager/configmap.yaml

# Every file is named here, and not by a kustomization.yaml in each folder: programs apply these folders as they are.
{
	cat <<-'HEAD'
		# Written by `make generate`. The README says how to install with it: the image has to be put in.
		apiVersion: kustomize.config.k8s.io/v1beta1
		kind: Kustomization
		# As listed: kubectl would else apply the Deployment before the policies.
		sortOptions:
		  order: fifo
		resources:
	HEAD
	for file in config/{crd,rbac,policy,manager}/*.yaml; do
		echo "  - ${file#config/}"
	done
} >config/kustomization.yaml

copy() { # <folder of config> <target folder>
	rm -rf "$2"
	mkdir -p "$2"
	cp "$1"/*.yaml "$2/"
}

# Helm installs crds/ before everything else and never deletes it: an uninstall must not delete reservations.
copy config/crd "$chart/crds"
for folder in rbac policy manager; do
	copy "config/$folder" "$chart/files/$folder"
done
