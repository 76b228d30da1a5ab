#!/usr/bin/env bash
# Runs `bench run`, `bench ab` or `bench diff`, as MODE says, and adds what it found to the step's summary.
#
# SCENARIO  the scenario file of run and ab
# SERVER    names of servers, separated by blanks: run measures only those, ab compares the one
# CONTROL   the server of ab that stays as it is
# BASE      what ab and diff compare with: a revision; of diff also a file or folder. Empty: of a pull request the newest
#           commit of its base branch that is in what is checked out; outside of one, for diff, HEAD
# OPTION    further options, separated by blanks
# FAIL_ON   the change for the worse that fails, such as 5%
# REPORTS   what diff compares with BASE
# OUT       folder for what is written; a run writes to a folder below it, named as its scenario is
# LIMIT     what the text must fit into: summary or comment
#
# Outputs: `text`, a file of Markdown, and `exit-code`, that of bench, which is also this script's.
set -euo pipefail

# A step's summary may have 1 MiB.
SUMMARY_BYTES=$((1 << 20))
# A comment may have 65 536 characters, and is put below a line of its own.
COMMENT_CHARACTERS=65000

fail() {
    echo "::error::$1" >&2
    exit 2
}

# The revision to compare with.
base() {
    if [[ -n $BASE ]]; then
        echo "$BASE"
    elif [[ -n ${GITHUB_BASE_REF:-} ]]; then
        git merge-base HEAD "origin/$GITHUB_BASE_REF" ||
            fail "what this shares with $GITHUB_BASE_REF is not known here; give actions/checkout 'fetch-depth: 0'"
    elif [[ $MODE == diff ]]; then
        echo HEAD
    else
        fail "this is no pull request: say what to compare with, 'base: HEAD~1' for one"
    fi
}

mkdir -p "$OUT"
# Blanks part the words, and so do ends of lines.
read -rd '' -a servers <<<"$SERVER" || true
read -rd '' -a options <<<"$OPTION" || true
servers=("${servers[@]/#/--server=}")
text=$OUT/$MODE.md
whole=$OUT/$MODE-whole.md
compared=(--limit "$LIMIT" --save "$whole" --whole "${whole##*/}, among the artefacts of this run")
[[ -z $FAIL_ON ]] || compared+=(--fail-on "$FAIL_ON")

code=0
case $MODE in
run)
    folder=$OUT/$(basename "$SCENARIO" .toml)
    bench run "$SCENARIO" --out "$folder" "${servers[@]}" "${options[@]}" || code=$?
    rendered=("$folder"/*.md)
    if [[ -e ${rendered[0]} ]]; then
        # Pictures are files beside the report, which neither a summary nor a comment has.
        sed '/^<picture>$/,/^<\/picture>$/d' "${rendered[0]}" >"$text"
        if [[ $LIMIT == comment ]] && (($(wc -m <"$text") >= COMMENT_CHARACTERS)); then
            echo "The report is too long for a comment; it is among the artefacts of this run." >"$text"
        fi
    fi
    ;;
ab)
    revision=$(base)
    [[ -z $CONTROL ]] || options+=(--control "$CONTROL")
    bench ab --base "$revision" "$SCENARIO" "${servers[@]}" --out "$OUT" "${compared[@]}" "${options[@]}" >"$text" || code=$?
    ;;
diff)
    revision=$(base)
    bench diff "$revision" "$REPORTS" --reports "$REPORTS" "${compared[@]}" "${options[@]}" >"$text" || code=$?
    ;;
*)
    fail "mode '$MODE' is none of run, ab and diff"
    ;;
esac

if [[ ! -s $text ]]; then
    text=$OUT/$MODE.md
    echo "\`bench $MODE\` ended with exit code $code; the log of this step says why." >"$text"
fi
if (($(wc -c <"$text") < SUMMARY_BYTES)); then
    cat "$text" >>"$GITHUB_STEP_SUMMARY"
else
    echo "The report is too long to be shown here; it is among the artefacts of this run." >>"$GITHUB_STEP_SUMMARY"
fi
{
    echo "text=$text"
    echo "exit-code=$code"
} >>"$GITHUB_OUTPUT"
exit "$code"
