#!/usr/bin/env bash
# The bash of make run and make test: with transparent huge pages for all programs, if that is a choice on this
# machine and root runs it. Where a page fault costs microseconds, as in some virtual machines, Go then builds in two
# thirds of the time. The setting is that of before when nothing runs any more that was started here; whoever kills
# the flock that waits for that keeps it.
set -euo pipefail

setting=/sys/kernel/mm/transparent_hugepage/enabled
if [[ -w $setting ]] && command -v flock >/dev/null && command -v setsid >/dev/null; then
  # Whatever is started here inherits the lock, and shares it with whoever else does this at the same time.
  exec 9<"$setting"
  if flock --shared --timeout 5 9 && [[ $(<"$setting") == *'[madvise]'* ]] && echo always 2>/dev/null >"$setting"; then
    setsid flock "$setting" sh -c "echo madvise >'$setting'" </dev/null &>/dev/null 9<&- &
  fi
fi
exec bash "$@"
