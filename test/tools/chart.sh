#!/usr/bin/env bash
# chart.sh copies what charts/berth installs from config/, which is the only place where it is written by hand.
#
# The copies are verbatim, one folder for each of config/'s; the chart's one template puts the release's namespace, the
# image and the other values into them. So the chart cannot drift, and a reader can compare it with diff -r.
set -euo pipefail
cd "$(dirname "$0")/../.."

chart=charts/berth

copy() { # <folder of config> <target folder>
	local file
	rm -rf "$2"
	for file in "$1"/*.yaml; do
		case $(basename "$file") in
		'*.yaml') continue ;;             # the folder is empty or missing
		kustomization.yaml) continue ;;   # for kustomize only
		namespace.yaml) continue ;;       # Helm creates or is given the namespace
		esac
		mkdir -p "$2"
		cp "$file" "$2/"
	done
}

# Helm installs crds/ before everything else and never deletes it: an uninstall must not delete reservations.
copy config/crd "$chart/crds"
for folder in rbac policy manager; do
	copy "config/$folder" "$chart/files/$folder"
done

# kustomize wants every file named.
{
	echo "# Written by \`make generate\`."
	echo "apiVersion: kustomize.config.k8s.io/v1beta1"
	echo "kind: Kustomization"
	echo "resources:"
	for file in config/crd/*.yaml; do
		if [[ $file != */kustomization.yaml ]]; then
			echo "  - $(basename "$file")"
		fi
	done
} >config/crd/kustomization.yaml
