#!/bin/sh
# Makes the folder of results and the model from the run that `make cifar10` or `make cifar10-hybrid` leaves.
#   sh results/allout-cifar10/make.sh runs/allout-second results/allout-cifar10 models/cifar10
#   sh results/allout-cifar10/make.sh runs/allout-hybrid results/hybrid-cifar10 models/cifar10-hybrid
set -e
run=${1:?name the run folder} results=${2:?name the folder of results} model=${3:?name the folder of the model}
mkdir -p "$results"
cp "$run/results.json" "$run/run.json" "$run/config.toml" "$run/metrics.jsonl" "$results"
dign report "$run" --quiet --out "$results/report.html" --figure "$results/$(basename "$results" -cifar10).png"
dign report "$run" --quiet --format markdown --out "$results/table.md"
rm -rf "$model"
dign hub save "$run" "$model" --license mit
