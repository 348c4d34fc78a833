#!/usr/bin/env bash
# The worked example of docs/loop.md on a machine with a GPU: two builds of longpole-qwen3, the one before a change and the one after it, through every
# step of the loop. Each command is printed with what it says; recordings and reports stay in OUT.
#   loop.sh LONGPOLE BEFORE AFTER OUT
# LONGPOLE is the binary, with its recorder beside it or named by LONGPOLE_RECORDER; BEFORE and AFTER are folders with a longpole-qwen3 each.
set -u
longpole=$(realpath "$1") before=$(realpath "$2") after=$(realpath "$3") out=$(realpath "$4")
export NO_COLOR=1 COLUMNS=110
key=Qwen3-4B/ops/linear_down/decode/tile
keys=(-k "$key" -k Qwen3-4B/ops/linear_o/decode/tile -k Qwen3-4B/ops/linear_qkv/decode/tile -k Qwen3-4B/ops/linear_gate_up/decode/tile
    -k Qwen3-4B/ops/attention/decode/tile -k Qwen3-4B/model/decode_step_ctx1024/tile)
work=(run --random Qwen3-4B --prompt-tokens 1024 --max-new-tokens 60 --context 2048 --warm-up)
cd "$out" || exit 2
ln -sfn "$before" before
ln -sfn "$after" after

say() {
    printf '\n$ %s\n' "${*/#$longpole/longpole}"
    "$@" 2>&1
    local code=$?
    [ $code -eq 0 ] || echo "[exit $code]"
}

{
    say "$longpole" record -q -o before.longpole -- before/longpole-qwen3 "${work[@]}" 2>&1 | tail -5
    say "$longpole" triage before.longpole
    say "$longpole" steps before.longpole
    say "$longpole" bench run "${keys[@]}" --suite before/longpole-qwen3 --suite-arg suite --max-seconds 0.7 -q -o before.json
    say "$longpole" profile "$key" --suite before/longpole-qwen3 --suite-arg suite --full -q --results before-profiles -o profile-before.txt
    cat profile-before.txt
} >loop-before.txt 2>&1
{
    report=$(find before-profiles -name '*.ncu-rep' | head -1)
    say "$longpole" profile "$key" --suite after/longpole-qwen3 --suite-arg suite --full -q --results after-profiles --compare "$report" -o profile-after.txt
    cat profile-after.txt
    say "$longpole" bench compare before.json "${keys[@]}" --suite after/longpole-qwen3 --suite-arg suite --suite-before before/longpole-qwen3 \
        --max-seconds 0.7 --rounds 2 --no-save -q
    say "$longpole" record -q -o after.longpole -- after/longpole-qwen3 "${work[@]}" 2>&1 | tail -5
    say "$longpole" steps after.longpole
    say "$longpole" diff before.longpole after.longpole
    say "$longpole" triage after.longpole
} >loop-after.txt 2>&1
