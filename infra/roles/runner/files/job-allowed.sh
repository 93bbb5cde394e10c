#!/bin/sh
# May this job run here? A label is no lock: the workflow files of any branch, and of a fork's pull
# request, can ask for it. The runner group turns them away before they come; where there is none, or
# it is set up wrong, this host does. GitHub sets these variables, a workflow cannot change them.
set -eu
refuse() { echo "::error title=Not allowed here::$1"; exit 1; }
case "${GITHUB_EVENT_NAME:-}" in
schedule | workflow_dispatch | pull_request_target)
  for name in bisect candidate nightly; do
    file=${GITHUB_REPOSITORY:-}/.github/workflows/$name.yml
    if [ "${GITHUB_WORKFLOW_REF:-}" != "$file@refs/heads/main" ]; then continue; fi
    # Run again, it has the workflow, and so the checks, of the commit that its event had.
    if [ "$name" = candidate ] && [ "${GITHUB_RUN_ATTEMPT:-}" != 1 ]; then
      refuse "a run of candidate is not run again: it would check as main did then; start a new run"
    fi
    exit 0
  done
  ;;
esac
# Workflows of other repositories that may measure a build here, by `build` of ours; one a line, with its branch.
case "${GITHUB_EVENT_NAME:-} ${GITHUB_RUN_ATTEMPT:-} ${GITHUB_WORKFLOW_REF:-}" in
"workflow_run 1 "?* | "workflow_dispatch 1 "?*)
  if grep -qxF -- "$GITHUB_WORKFLOW_REF" /etc/knickpoint-runner/callers 2>/dev/null; then exit 0; fi
  ;;
esac
refuse "only bisect, candidate and nightly of the default branch run on this host"
