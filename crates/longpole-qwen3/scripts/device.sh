#!/usr/bin/env bash
# Everything that needs a GPU, in the order of what matters: checks, sanitizer, logits against transformers, tokens a second, the suite.
#   device.sh PROGRAM OUT [checks|sanitizer|logits|speed|suite ...]
# PROGRAM is longpole-qwen3, OUT a folder for what it prints. Each part has a time limit of its own and costs no other.
set -u
program=$1 out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- checks sanitizer logits speed suite

for part in "$@"; do
    printf '\n=== %s (%d s in)\n' "$part" "$SECONDS"
    case $part in
    checks)
        timeout 60 "$program" check --all >"$out/check.txt" 2>&1
        echo "exit $?; $(grep -c '^ok' "$out/check.txt") ok"
        grep -v '^ok' "$out/check.txt" | head -40
        ;;
    sanitizer)
        command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not here"; continue; }
        for tool in memcheck racecheck; do
            timeout 150 compute-sanitizer --tool $tool "$program" check >"$out/$tool.txt" 2>&1
            echo "$tool: exit $?; $(tail -1 "$out/$tool.txt")"
        done
        ;;
    logits)
        for model in Qwen3-0.6B Qwen3-4B; do
            timeout 90 python3 "$here/compare.py" "$program" $model --speed 2>&1 | tee "$out/logits-$model.txt"
        done
        ;;
    speed)
        for model in Qwen3-0.6B Qwen3-4B; do
            for mode in "" --no-overlap --eager; do
                echo "$model $mode"
                # shellcheck disable=SC2086
                timeout 60 "$program" run --random $model --prompt-tokens 1024 --max-new-tokens 256 --context 2048 --warm-up --stats $mode 2>&1 >/dev/null |
                    tee -a "$out/speed.txt"
            done
        done
        ;;
    suite)
        timeout 200 "$program" suite run "${LONGPOLE_KEYS:-.*}" --max-seconds "${LONGPOLE_SECONDS:-0.5}" >"$out/suite.jsonl" 2>"$out/suite.err"
        echo "exit $?"
        head -5 "$out/suite.err"
        python3 "$here/table.py" "$out/suite.jsonl"
        ;;
    esac
done
