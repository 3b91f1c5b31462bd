#!/bin/sh
# Makes this folder and models/cifar10 from the run that `make cifar10` leaves.
#   sh results/allout-cifar10/make.sh runs/allout-second
set -e
run=${1:?name the run folder}
here=$(dirname "$0")
cp "$run/results.json" "$run/run.json" "$run/config.toml" "$run/metrics.jsonl" "$here"
dign report "$run" --quiet --out "$here/report.html" --figure "$here/allout.png"
dign report "$run" --quiet --format markdown --out "$here/table.md"
rm -rf models/cifar10
dign hub save "$run" models/cifar10 --license mit
