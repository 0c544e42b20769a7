#!/usr/bin/env bash
# verify.sh fails if the checkout is not what `make generate`, gofmt and `go mod tidy` would leave, if go vet objects,
# or if the tree holds changes that are not committed. It runs everything before it fails, so that one run shows all.
#
# With ALLOW_DIRTY set, uncommitted changes are accepted as long as generation leaves them alone: that is what someone
# in the middle of a change needs.
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"

failed=
complain() { # <headline> <indented lines> <what to do>
	printf '\nverify: %s\n%s\n  -> %s\n' "$1" "$(sed 's/^/    /' <<<"$2")" "$3" >&2
	failed=1
}

# What `make generate` writes: hash and path, one file a line.
generated() {
	find config/crd config/kustomization.yaml config/manager/configmap.yaml charts/berth pkg -type f \
		\( -path 'config/*' -o -path 'charts/*' -o -name 'zz_generated*.go' \) | sort |
		while IFS= read -r file; do
			printf '%s %s\n' "$(git hash-object --no-filters "$file")" "$file"
		done
}

before=$(generated)
make generate
after=$(generated)
changed=$(diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9a-f]* //p' | sort -u || true)
if [[ -n $changed ]]; then
	complain "these files were not up to date; they are now:" "$changed" "look at them and commit them"
fi

unformatted=$(git ls-files -z --cached --others --exclude-standard -- '*.go' |
	while IFS= read -r -d '' file; do
		if [[ -f $file ]]; then printf '%s\0' "$file"; fi # deleted, but not yet in the index
	done | xargs -0 -r gofmt -l)
if [[ -n $unformatted ]]; then
	complain "not gofmt'ed:" "$unformatted" "gofmt -w on them"
fi

# The root module, and every module of pins or components below test/.
modules=$(find . -path ./.cache -prune -o -name go.mod -print | sed 's|/go.mod$||' | sort)
for module in $modules; do
	if ! untidy=$(cd "$module" && go mod tidy -diff 2>&1); then
		complain "go.mod or go.sum of $module is not tidy:" "$(head -n 40 <<<"$untidy")" "run: go -C $module mod tidy"
	fi
done

for module in $modules; do
	# A module of pins has no package.
	packages=$(cd "$module" && go list -e ./... 2>/dev/null)
	if [[ -z $packages ]]; then
		continue
	fi
	flags=()
	# The components are built with -trimpath; with it vet can use what was compiled for them, and they what it compiles.
	if [[ $module == ./test/cluster/components/* ]]; then flags=(-trimpath); fi
	if ! objections=$(cd "$module" && go vet "${flags[@]}" ./... 2>&1); then
		complain "go vet in $module:" "$objections" "mend them"
	fi
done

dirty=$(git status --porcelain --untracked-files=all)
if [[ -n $dirty && -z ${ALLOW_DIRTY:-} ]]; then
	complain "the tree is not clean:" "$dirty" "commit or remove these, or pass ALLOW_DIRTY=true"
fi

if [[ -n $failed ]]; then
	exit 1
fi
echo "verify: generated files, formatting, modules and vet are in order"
