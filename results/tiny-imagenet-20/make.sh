#!/bin/sh
# Makes the table, the page and the figure of this folder from the runs of experiments/laptop-sigma-tiny-imagenet-20.toml.
#   sh results/tiny-imagenet-20/make.sh RUNS        RUNS: the folder with the runs
set -e
runs=${1:?name the folder of the runs}
here=$(dirname "$0")
for run in "$runs"/*; do
    [ -e "$run/results.json" ] && cp "$run/results.json" "$here/$(basename "$run").json"
done
dign report "$runs" --quiet --out "$here/report.html" --figure "$here/tiny-imagenet-20.png"
dign report "$runs" --quiet --format markdown --out "$here/table.md"
