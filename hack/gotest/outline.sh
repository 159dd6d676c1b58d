#!/usr/bin/env bash
# Says what make test will do on this machine, and about how long it takes. That is printed before anything is
# built.
set -euo pipefail

echo "make test, on $(getconf _NPROCESSORS_ONLN) processors, takes three steps:"
echo "  1. It looks for packages of the system, and installs them if it can: a minute."
if [[ -s bin/test/duration ]]; then
  echo "  2. It builds what has changed: a few minutes."
  echo "  3. It runs the tests. The last run here took $(<bin/test/duration)."
else
  echo "  2. It builds what the cache of this machine lacks. On two cores that takes 6 minutes for kube-apiserver,"
  echo "     etcd and kubectl, 10 for Liqo and the other programs of Kubernetes, 3 for Prometheus, and 3 for the"
  echo "     operator with the race detector."
  echo "  3. It compiles the tests, on two cores in a quarter of an hour if Go's build cache is empty, and runs"
  echo "     them: half an hour on two cores."
fi
