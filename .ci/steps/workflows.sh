# The workflows, the scripts in them and beside them.
target/tools/actionlint
shellcheck .ci/run .ci/release .github/actions/*/*.sh servers/*.sh
shellcheck --shell=bash .ci/steps/*.sh
