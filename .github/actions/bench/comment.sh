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

# What others write is left alone, also when they quote the marker. A token of a workflow has no user to ask for.
MARKER=$marker
LOGIN=$(gh api user --jq .login 2>/dev/null || true)
export MARKER LOGIN
mine=$(gh api --paginate "$comments/$NUMBER/comments" \
    --jq '.[] | select(if env.LOGIN == "" then .user.type == "Bot" else .user.login == env.LOGIN end)
              | select(.body | startswith(env.MARKER)) | .id')
if [[ -n $mine ]]; then
    gh api --silent --method PATCH "$comments/comments/${mine%%$'\n'*}" --field "body=@$body"
else
    gh api --silent --method POST "$comments/$NUMBER/comments" --field "body=@$body"
fi
