#!/bin/sh
# Makes the table, the page and the figure of this folder from the runs of experiments/photos.toml.
#   sh results/photos/make.sh RUNS        RUNS: the folder with the runs
set -e
runs=${1:?name the folder of the runs}
here=$(dirname "$0")
for run in "$runs"/*; do
    [ -e "$run/results.json" ] && cp "$run/results.json" "$here/$(basename "$run").json"
done
dign report "$runs" --quiet --out "$here/report.html" --figure "$here/photos.png"
dign report "$runs" --quiet --format markdown --out "$here/table.md"
