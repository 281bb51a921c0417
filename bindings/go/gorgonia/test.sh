#!/usr/bin/env bash
# Tests the solver for Gorgonia, whose modules are fetched, against the libzero that pkg-config finds.
# usage: test.sh      exit code 77 says why it cannot run here
set -euo pipefail
cd "$(dirname "$0")"

skip() {
  echo "$*"
  exit 77
}
[ -n "${ZERO_TEST_FULL:-}" ] || skip "it fetches and compiles Gorgonia for minutes: only with ZERO_TEST_FULL=1 (tools/test.sh --full)"
export GOFLAGS=-mod=readonly
if [ "${ZERO_FETCH:-1}" = 0 ]; then export GOPROXY=off; fi
complaint=$(go mod download 2>&1) || skip "the modules of Gorgonia cannot be fetched: $(tail -n 1 <<<"$complaint")"
test -z "$(gofmt -l .)" || { gofmt -d .; exit 1; }
go vet ./...
go test -count=1 -v ./...
