#!/usr/bin/env bash
# gotestsum runs this after the tests of a module, with their counts in the environment.
set -euo pipefail
# A package that does not build counts as failed, but has no tests.
passed=$((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED))
printf '%6d passed %4d failed %4d skipped  %s\n' $((passed > 0 ? passed : 0)) "$TESTS_FAILED" "$TESTS_SKIPPED" "$MODULE" >>"$SUMMARY"
if ((passed <= 0 && TESTS_FAILED + TESTS_ERRORS == 0)); then
  echo "no test of module $MODULE ran" >&2
  exit 1
fi
