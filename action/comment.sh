#!/usr/bin/env bash
# Writes the result into one comment of a pull request: the one of a program that begins with the
# marker of the first line, or a new one. The author of a comment can change its text, so one of
# a person is left alone. FILE: the text. NUMBER: of the pull request. Needs gh and GH_TOKEN.
set -euo pipefail

marker="$(head -n 1 "$FILE")"
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
filter=".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$marker\"))) | .id"
id="$(gh api --paginate "$comments" --jq "$filter" | head -n 1)"
if [ -n "$id" ]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" -F "body=@$FILE" >/dev/null
else
  gh api --method POST "$comments" -F "body=@$FILE" >/dev/null
fi
