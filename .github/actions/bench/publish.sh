#!/usr/bin/env bash
# Publishes reports that were just measured. To be run in a checkout of the commit that they were measured at.
#
#   publish.sh collect FOLDER SCENARIO...   takes FOLDER/SCENARIO/X.{json,md,pictures} over into REPORTS where they are
#                                           complete; leaves REPORTS as it is where not, and says so
#   publish.sh compare                      what changed since HEAD, into the step's summary
#   publish.sh push BRANCH                  one commit for each report that changed, on top of BRANCH as it is by now
#
# REPORTS is the folder of the reports: `reports`, unless it is set.
set -euo pipefail
# A project may have no reports yet.
shopt -s nullglob

REPORTS=${REPORTS:-reports}

# How often a push is tried when the branch moves between fetch and push.
TRIES=5

say() {
    printf '%s\n' "$@" | tee -a "$GITHUB_STEP_SUMMARY"
}

collect() {
    local from=$1 scenario refused
    shift
    say "## Reports" ""
    for scenario; do
        refused=$(take "$from/$scenario")
        say "- $scenario: ${refused:-measured}"
    done
    say ""
}

# Takes the report in a folder over; prints why not.
take() {
    local folder=$1 results journals stem
    results=("$folder"/*.json)
    journals=("$folder"/*.journal*)
    if ((${#results[@]} != 1)); then
        echo "**no report**: its job failed before there was one; the old one stays"
    elif ((${#journals[@]} > 0)); then
        # A run removes its journal when it is complete.
        echo "**not complete**: its job was stopped; the old one stays"
    elif ! bench report --check "${results[0]}" >&2; then
        echo "**damaged**: its report is not what its results render to; the old one stays"
    else
        stem=${results[0]##*/}
        stem=${stem%.json}
        mkdir -p "$REPORTS"
        rm -rf "${REPORTS:?}/$stem.pictures"
        cp -R "$folder/$stem".{json,md} "$folder/$stem".pictures* "$REPORTS/"
    fi
}

compare() {
    local changes code=0
    if [[ -z $(git status --porcelain -- "$REPORTS") ]]; then
        say "No report changed."
        return
    fi
    changes=$(mktemp)
    # Where the machine was another, or the settings, the figures are of interest all the same; there are no verdicts then.
    bench diff HEAD "$REPORTS" --reports "$REPORTS" --force --limit summary >"$changes" || code=$?
    cat "$changes" >>"$GITHUB_STEP_SUMMARY"
    rm "$changes"
    if ((code > 1)); then
        say "There is nothing to compare the reports with; the log of this step says why."
    fi
}

push() {
    local branch=$1 try left commit commits
    identify
    commit_each
    mapfile -t commits < <(git rev-list --reverse "$MEASURED_AT..HEAD")
    if ((${#commits[@]} == 0)); then
        say "Nothing to commit."
        return
    fi
    for ((try = 1; try <= TRIES; try++)); do
        git fetch --quiet origin "refs/heads/$branch"
        git checkout --quiet --detach FETCH_HEAD
        left=()
        for commit in "${commits[@]}"; do
            if ! git cherry-pick "$commit" >/dev/null 2>&1; then
                # Nothing to do is a failure too: the branch has this report, as when the job is run again.
                if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
                    left+=("- $(git log -1 --format=%s "$commit"): left out, for $branch has another report by now")
                fi
                git cherry-pick --abort
            fi
        done
        if git push --quiet origin "HEAD:refs/heads/$branch"; then
            say "On $branch now: $((${#commits[@]} - ${#left[@]})) of ${#commits[@]} reports." "" "${left[@]}"
            return
        fi
    done
    echo "::error::the reports cannot be pushed to $branch; they are among the artefacts of this run" >&2
    return 1
}

# Who commits, and that two versions of a report are never mixed: half of one run and half of another would be a
# report of neither.
identify() {
    local attributes
    git config user.name "github-actions[bot]"
    git config user.email "41898282+github-actions[bot]@users.noreply.github.com"
    attributes=$(git rev-parse --git-path info/attributes)
    mkdir -p "${attributes%/*}"
    echo "$REPORTS/** -merge" >>"$attributes"
}

# A commit for each report that changed.
commit_each() {
    local results stem
    MEASURED_AT=$(git rev-parse HEAD)
    for results in "$REPORTS"/*.json; do
        stem=${results%.json}
        git add --all -- "$stem.*"
        if ! git diff --cached --quiet; then
            git commit --quiet --message "${stem##*/}: measured at ${MEASURED_AT:0:12} by run ${GITHUB_RUN_ID:-(none)}"
        fi
    done
}

case ${1:-} in
collect | compare | push)
    "$@"
    ;;
*)
    echo "usage: $0 collect FOLDER SCENARIO... | compare | push BRANCH" >&2
    exit 2
    ;;
esac
