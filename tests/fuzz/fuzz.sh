#!/usr/bin/env bash
# Fuzzes one target and keeps the smallest inputs that reach all that was reached: fuzz.sh TARGET RUNS BUILD.
set -euo pipefail
cd "$(dirname "$0")"
target=$1 runs=$2 build=$3
found=$build/found/$target
kept=$build/kept/$target
log=$build/$target.log
rm -rf "$found" "$kept"
mkdir -p "$found" "$kept" "corpus/$target"
# A count from the wire that is believed too early shows as an allocation.
limits=(-max_len=512 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64)

"$build/libfuzzer/$target" "${limits[@]}" -runs="$runs" -print_final_stats=1 -artifact_prefix="$build/crash-$target-" \
    "$found" "corpus/$target" "$build/seeds/$target" >"$log" 2>&1 || { tail -40 "$log"; exit 1; }

# Without counters an input is kept for an edge that no other takes, not for how often: some dozens instead of hundreds.
"$build/libfuzzer/$target" "${limits[@]}" -merge=1 -use_counters=0 \
    "$kept" "corpus/$target" "$found" "$build/seeds/$target" >"$log.merge" 2>&1 || { tail -40 "$log.merge"; exit 1; }
rm -rf "corpus/$target"
cp -r "$kept" "corpus/$target"

cover=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -1)
rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, $rate a second, $cover," \
    "$(find "corpus/$target" -type f | wc -l) inputs kept"
