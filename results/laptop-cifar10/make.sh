#!/bin/sh
# Makes the tables, the page and the figures of this folder from the runs of the grids in experiments/laptop-*.toml.
#   sh results/laptop-cifar10/make.sh RUNS        RUNS: the folder with laptop and the studies that were run
set -e
runs=${1:?name the folder of the runs}
here=$(dirname "$0")
for run in "$runs"/laptop/*; do
    [ -e "$run/results.json" ] && cp "$run/results.json" "$here/$(basename "$run").json"
done
dign landscape "$runs"/laptop/*-standard-seed? "$runs"/laptop/*-dign-seed? --split test --images 500 --device cpu --out "$here/landscape"
dign report "$runs/laptop" --quiet --out "$here/report.html" --figure "$here/laptop.png"
dign report "$runs/laptop" --quiet --format markdown --out "$here/table.md"
for study in sensitivity branches; do
    [ -d "$runs/laptop-$study" ] || continue
    dign grid "experiments/laptop-$study-cifar10.toml" --out "$runs/laptop-$study" --sensitivity --quiet
    mkdir -p "$here/$study"
    cp -r "$runs/laptop-$study/sensitivity/." "$here/$study"
done

keep() {  # RUN NAME: the results of a run, under another name, if it was run
    if [ -e "$runs/$1/results.json" ]; then cp "$runs/$1/results.json" "$here/$2.json"; fi
}
mkdir -p "$here/why"
keep laptop-longer/cifar10-fastnet-dign-seed0 why/dign-18-epochs
keep laptop-longer/cifar10-fastnet-dign-without-cr-seed0 why/dign-without-cr-18-epochs
keep laptop-apart/cifar10-fastnet-dign-seed0 why/dign-apart
keep laptop-apart/cifar10-fastnet-dign+augmix-seed0 why/dign+augmix-apart
keep laptop-lambda why/dign-lambda-0.2
keep laptop-default branches/default
