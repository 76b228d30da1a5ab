#!/usr/bin/env bash
# Puts a text below a pull request, in place of the one it put there before.
#
# TEXT    file with the text
# KEY     which of several; the comment is found again by it
# NUMBER  of the pull request
# GH_TOKEN, GITHUB_REPOSITORY as gh(1) takes them
set -euo pipefail

marker="<!-- bench: $KEY -->"
comments=repos/$GITHUB_REPOSITORY/issues
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
    echo "$marker"
    cat "$TEXT"
} >"$body"

# What people write is left alone, also when they quote the marker.
mine=$(gh api --paginate "$comments/$NUMBER/comments" \
    --jq ".[] | select(.user.type == \"Bot\") | select(.body | startswith(\"$marker\")) | .id")
if [[ -n $mine ]]; then
    gh api --silent --method PATCH "$comments/comments/${mine%%$'\n'*}" --field "body=@$body"
else
    gh api --silent --method POST "$comments/$NUMBER/comments" --field "body=@$body"
fi
