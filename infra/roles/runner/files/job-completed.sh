#!/bin/sh
# After each job, as the runner's user: ends what the job left running, and empties where it wrote.
# The runner's own directory is thrown away as a whole after that (knickpoint-runner-clean).
set -eu
/usr/local/lib/knickpoint/job-started.sh completed
if [ -n "${GITHUB_WORKSPACE:-}" ] && [ -d "$GITHUB_WORKSPACE" ]; then
  find "$GITHUB_WORKSPACE" -mindepth 1 -delete
fi
for temporary in /tmp /var/tmp /dev/shm; do
  find "$temporary" -mindepth 1 -xdev -user "$(id -u)" -delete 2>/dev/null || true
done
