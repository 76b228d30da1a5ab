#!/bin/sh
# Installs the release of Bun that package.json names: a program that its npm package carries. What moves it
# to its place is called by name, since not every npm runs the scripts of packages.
set -eu
npm ci --silent --ignore-scripts --no-audit --no-fund
cd node_modules/bun
node install.js
