#!/bin/sh
# Before each job, as the runner's user: nothing of an earlier job runs beside it.
# Kept are this shell and what started it, up to the runner itself.
set -eu
if [ "${1:-}" != completed ]; then /usr/local/lib/knickpoint/job-allowed.sh; fi
keep=" " pid=$$
while [ "$pid" -gt 1 ]; do
  keep="$keep$pid "
  pid=$(ps -o ppid= -p "$pid" | tr -d ' ')
done
for pid in $(pgrep -u "$(id -u)"); do
  case "$keep" in
  *" $pid "*) ;;
  *) kill -KILL "$pid" 2>/dev/null && echo "ended a left-over process: $pid" || true ;;
  esac
done
