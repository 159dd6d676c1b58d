#!/usr/bin/env bash
# Makes sure that this machine has the programs of the system that the tests need: a C compiler for the
# race detector, Chromium for the pages, the servers and clients of MariaDB and PostgreSQL, Galera and
# PgBouncer for the books, and curl and ps. On Debian and Ubuntu, root gets the packages that are missing.
# Everybody else gets the command to type.
set -euo pipefail
exec 9<&- # A server that a package starts would hold the lock of hack/hugepages.sh.

# Debian has servers in directories that are not in the PATH of everybody.
PATH=$PATH:/usr/sbin:/usr/local/sbin
for bin in /usr/lib/postgresql/*/bin; do PATH+=:$bin; done

# os-release sets ID.
ID=
[[ ! -e /usr/lib/os-release ]] || . /usr/lib/os-release

found() { command -v "$1" >/dev/null 2>&1 || [[ $1 == /* && -e $1 ]]; }

needs=() packages=()
lacks() { # WHAT PACKAGE...
  needs+=("$1")
  packages+=("${@:2}")
}
need() { # WHAT PACKAGE PROGRAM...: all of the programs, or files
  local program
  for program in "${@:3}"; do
    found "$program" || { lacks "$1" "$2" && return; }
  done
}

"${CC:-gcc}" -E - <<<'#include <stdlib.h>' >/dev/null 2>&1 ||
  lacks "a C compiler, with the headers of the C library: in PATH, or named by CC" gcc libc6-dev
# Without its snap, chromium-browser of Ubuntu is there, but fails.
chrome=
for program in ${PROFFER_CHROMIUM:-chromium google-chrome chromium-browser}; do
  "$program" --version >/dev/null 2>&1 && chrome=$program && break
done
[[ $chrome || $ID == ubuntu ]] ||
  lacks "Chromium: in PATH, as chromium, google-chrome or chromium-browser, or named by PROFFER_CHROMIUM" chromium
need "the server of MariaDB: mariadbd and mariadb-install-db in PATH" mariadb-server mariadbd mariadb-install-db
need "the clients of MariaDB: mariadb and mariadb-dump in PATH" mariadb-client mariadb mariadb-dump
galera=/usr/lib/galera/libgalera_smm.so
need "Galera 4: $galera, or named by PROFFER_GALERA" galera-4 "${PROFFER_GALERA:-$galera}"
need "rsync: in PATH" rsync rsync
need "the server of PostgreSQL: postgres and initdb in PATH" postgresql postgres initdb
need "the clients of PostgreSQL: psql and pg_dump in PATH" postgresql-client psql pg_dump
need "the pooler of PostgreSQL: pgbouncer in PATH" pgbouncer pgbouncer
need "curl: in PATH" curl curl
need "ps: in PATH" procps ps

# Ubuntu has no package of Chromium, only a snap.
chromeByHand() {
  [[ $ID == ubuntu && ! $chrome ]] || return 0
  echo "Ubuntu has Chromium as a snap, which containers cannot run. Type this, or name a Chromium by"
  echo "PROFFER_CHROMIUM, and start again:"
  echo "  curl -fLO https://dl.google.com/linux/direct/google-chrome-stable_current_amd64.deb"
  echo "  sudo apt-get install ./google-chrome-stable_current_amd64.deb"
  exit 1
} >&2

((${#needs[@]})) || { chromeByHand && exit 0; }
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
  chromeByHand
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
chromeByHand
