#!/usr/bin/env bash
# Runs every fuzz target of the module for a while: fuzz.sh [DURATION].
# A finding is left under testdata/fuzz of its package, as go test does.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
time=${1:-20s}

found=0
for package in $("$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
	dir=$("$go" list -f '{{.Dir}}' "$package")
	for target in $(grep -h -o '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //'); do
		found=$((found + 1))
		echo "fuzz: $package $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1000x "$package"
	done
done
[ "$found" -gt 0 ] || { echo "fuzz: no target found" >&2; exit 1; }
