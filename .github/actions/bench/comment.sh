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

# What others write is left alone, also when they quote the marker. Whose the token is, GraphQL tells of every kind of
# token; that of a workflow has no user to ask REST for. An app's comments have `[bot]` behind its name.
MARKER=$marker
LOGIN=$(gh api graphql --raw-field 'query={viewer{login}}' --jq .data.viewer.login)
export MARKER LOGIN
mine=$(gh api --paginate "$comments/$NUMBER/comments" \
    --jq '.[] | select(.user.login == env.LOGIN or .user.login == env.LOGIN + "[bot]")
              | select(.body | startswith(env.MARKER)) | .id')
if [[ -n $mine ]]; then
    gh api --silent --method PATCH "$comments/comments/${mine%%$'\n'*}" --field "body=@$body"
else
    gh api --silent --method POST "$comments/$NUMBER/comments" --field "body=@$body"
fi
