#!/usr/bin/env bash
# Runs the tests: annotations on standard output, a summary, and files for later steps.
# PATHS: files and folders, separated by blanks. AGAINST: a revision, or nothing.
set -uo pipefail

folder="${RUNNER_TEMP:-/tmp}/kubestow-test"
mkdir -p "$folder"
markdown="$folder/comment.md"
junit="$folder/junit.xml"
options=(-o github --report "$markdown" --report "$junit" --force)
if [ -n "${AGAINST:-}" ]; then
  options+=(--against "$AGAINST")
fi
read -r -a paths <<<"${PATHS:-.}"

kubestow test "${paths[@]}" "${options[@]}"
code=$?

if [ -f "$markdown" ]; then
  cat "$markdown" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
  {
    echo "markdown=$markdown"
    echo "junit=$junit"
  } >>"${GITHUB_OUTPUT:-/dev/null}"
fi
exit "$code"
