#!/usr/bin/env bash
# repeat.sh <passes> <command...> runs the command that many times in a row and prints how long each pass took.
# It stops at the first pass that fails: a suite that is green nine times out of ten is red.
set -euo pipefail

passes=$1
shift

times=()
summary() {
	local pass=1 taken
	for taken in "${times[@]}"; do
		printf 'pass %2d of %d: %s\n' "$pass" "$passes" "$taken"
		pass=$((pass + 1))
	done
}
trap summary EXIT

for ((pass = 1; pass <= passes; pass++)); do
	started=$SECONDS
	if ! "$@"; then
		times+=("FAILED after $((SECONDS - started)) s")
		exit 1
	fi
	times+=("$((SECONDS - started)) s")
done
