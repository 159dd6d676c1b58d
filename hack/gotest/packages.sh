#!/usr/bin/env bash
# Makes sure that this machine has the programs of the system that the tests need: a C compiler for the
# race detector, Chromium for the pages, and the servers of MariaDB and PostgreSQL and PgBouncer for the
# books. On Debian and Ubuntu, root gets the packages that are missing. Everybody else gets the command to type.
set -euo pipefail

found() { command -v "$@" >/dev/null 2>&1; }

needs=() packages=()
need() { # WHAT PACKAGE...
  needs+=("$1")
  packages+=("${@:2}")
}

"${CC:-gcc}" -E - <<<'#include <stdlib.h>' >/dev/null 2>&1 ||
  need "a C compiler, with the headers of the C library: in PATH, or named by CC" gcc libc6-dev
found chromium || found chromium-browser || found google-chrome ||
  need "Chromium: in PATH, as chromium, chromium-browser or google-chrome" chromium
PATH=$PATH:/usr/sbin:/usr/local/sbin found mariadbd ||
  need "the server of MariaDB, with Galera 4 and rsync: mariadbd in PATH" mariadb-server
compgen -G "/usr/lib/postgresql/*/bin/postgres" >/dev/null || found postgres ||
  need "the server of PostgreSQL: postgres in PATH" postgresql
PATH=$PATH:/usr/sbin:/usr/local/sbin found pgbouncer ||
  need "the pooler of PostgreSQL: pgbouncer in PATH" pgbouncer
((${#needs[@]})) || exit 0

if ! found apt-get; then
  {
    echo "The tests need, and this machine lacks:"
    printf -- '- %s\n' "${needs[@]}"
  } >&2
  exit 1
fi
if [[ $(id -u) != 0 ]]; then
  echo "The tests need packages that only root can install. Type this, and start again:" >&2
  echo "  sudo apt-get install --no-install-recommends ${packages[*]}" >&2
  exit 1
fi
echo "installing ${packages[*]} (a minute)"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --no-install-recommends "${packages[@]}" >/dev/null
# The tests start servers of their own. These would only take memory.
for package in "${packages[@]}"; do
  case $package in
  mariadb-server | postgresql | pgbouncer) service "${package%-server}" stop >/dev/null 2>&1 || true ;;
  esac
done
