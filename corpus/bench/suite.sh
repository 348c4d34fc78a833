#!/bin/sh
# A suite of benchmarks that measures nothing: it speaks the protocol of docs/suite-protocol.md with made-up times of a made-up device, the
# same every time, so that pages and tests can show what longpole makes of a suite where there is no GPU. Shell alone: no other program runs.
#
# EXAMPLE_SCALE='KEY=PERMILLE ...'  times of these benchmarks, 1000 for as they are
# EXAMPLE_SEED=N                    other noise
# EXAMPLE_DEVICE=NAME               another device
# EXAMPLE_CLOCK=MHZ                 another clock
# EXAMPLE_L2=warm                   what the cache is said to hold
# EXAMPLE_TROUBLE='WHAT:KEY ...'    what goes wrong at these benchmarks: error, wrong, crash, exit, garbage, disorder, endless, hang, noisy, hot

# key, picoseconds of a run, bytes, operations, shape
benchmarks="
example/ops/copy/decode/float4 499000000 2147483648 null {\"bytes\":1073741824}
example/ops/gemv/decode/thread_row 78400000 50339840 50331648 {\"rows\":12288,\"columns\":2048}
example/ops/gemv/decode/warp_row 14600000 50339840 50331648 {\"rows\":12288,\"columns\":2048}
example/ops/rms_norm/decode/fused 2345000 12288 8192 {\"rows\":1,\"columns\":2048}
example/ops/gemm/prefill/tile 1163000000 234881024 824633720832 {\"m\":4096,\"n\":12288,\"k\":8192}
example/model/decode_step_ctx1024/eager 2710000000 1221328896 null null
"
device=${EXAMPLE_DEVICE:-Example GPU}
clock=${EXAMPLE_CLOCK:-1755}

# What a list of `NAME=VALUE` or `VALUE:NAME` words says of a key.
of_list() {
    for word in $1; do
        case $word in
        "$2="*) echo "${word#*=}"; return ;;
        *":$2") echo "${word%%:*}"; return ;;
        esac
    done
    echo "$3"
}

list() {
    printf '{"schema":"longpole.suite.list/1","suite":{"name":"example","version":"1"},"benchmarks":['
    comma=
    echo "$benchmarks" | while read -r key time bytes flops shape; do
        [ -n "$key" ] || continue
        rest=${key#*/*/}
        op=${rest%%/*}
        phase=null
        case $key in */model/*) ;; *) rest=${rest#*/}; phase="\"${rest%%/*}\"" ;; esac
        printf '%s\n{"key":"%s","model":"example","op":"%s","phase":%s,"shape":%s,"bytes":%s,"flops":%s,"unit_runs":1}' \
            "$comma" "$key" "$op" "$phase" "$shape" "$bytes" "$flops"
        comma=,
    done
    printf '\n]}\n'
}

say_device() {
    printf '{"event":"device","device":{"name":"%s","uuid":"GPU-example","driver":"580.1","cuda":"13.0","sm_count":132,"memory_bytes":150754820096,"l2_bytes":52428800}}\n' "$device"
}

measure() {
    key=$1 time=$2 bytes=$3 flops=$4
    trouble=$(of_list "$EXAMPLE_TROUBLE" "$key" none)
    scale=$(of_list "$EXAMPLE_SCALE" "$key" 1000)
    time=$((time / 1000 * scale))
    if [ "$trouble" = error ]; then
        printf '{"event":"error","key":"%s","message":"tile.cu(12): error: too many registers"}\n' "$key"
        return
    fi
    printf '{"event":"start","key":"%s","bytes":%s,"flops":%s,"method":"graph","launches_per_sample":20,"buffers_rotated":8,"l2":"%s"}\n' "$key" "$bytes" "$flops" "${EXAMPLE_L2:-$l2}"
    seed=$((${EXAMPLE_SEED:-1} * 7919 + time % 10007))
    index=0
    while [ $index -lt "$samples" ]; do
        seed=$(((seed * 1103515245 + 12345) % 2147483648))
        noise=$(((seed / 65536) % 1000 - 500))
        if [ "$trouble" = noisy ]; then noise=$((noise * 100)); fi
        sample=$((time + time / 100000 * noise))
        throttle='[]' throttled=false
        if [ "$trouble" = hot ] && [ $((index % 5)) -eq 0 ]; then
            sample=$((sample + sample / 10)) throttle='["sw_power_cap"]' throttled=true
        fi
        if [ $index -eq 7 ]; then
            case $trouble in
            crash) echo 'CUDA error: an illegal memory access was encountered' >&2; kill -SEGV $$ ;;
            exit) echo 'out of memory' >&2; exit 3 ;;
            garbage) echo '{"event":"sample","key":"?"}' ;;
            disorder) index=9 ;;
            hang) while :; do /bin/sleep 1; done ;;
            esac
        fi
        printf '{"event":"sample","key":"%s","index":%d,"time_ps":%d,"sm_clock_mhz":%d,"memory_clock_mhz":3201,"temperature_c":41,"power_mw":312000,"throttle":%s,"throttled":%s}\n' \
            "$key" $index $sample "$clock" "$throttle" $throttled
        index=$((index + 1))
    done
    if [ "$trouble" = endless ]; then return; fi
    correct=true
    if [ "$trouble" = wrong ]; then correct=false; fi
    printf '{"event":"end","key":"%s","samples":%d,"stopped_by":"precise","warm_up_ns":250000000,"correct":%s}\n' "$key" $index $correct
}

command=$1
shift
keys= samples=40 l2=cold
while [ $# -gt 0 ]; do
    case $1 in
    --json | --json-lines) ;;
    --samples) samples=$2; shift ;;
    --l2) l2=$2; shift ;;
    --max-seconds | --relative-error | --launches) shift ;;
    *) keys="$keys $1" ;;
    esac
    shift
done

case $command in
list) list ;;
run)
    echo "a made-up suite: nothing is measured" >&2
    say_device
    for wanted in $keys; do
        # Not in a pipe, so that a crash is that of the suite.
        while read -r key time bytes flops shape; do
            if [ "$key" = "$wanted" ]; then measure "$key" "$time" "$bytes" "$flops"; fi
        done <<END
$benchmarks
END
    done
    ;;
profile)
    echo "hello from the suite"
    for key in $keys; do printf '{"event":"profile","key":"%s","launches":1}\n' "$key"; done
    ;;
peaks)
    say_device
    echo '{"event":"peak","kind":"copy_bytes_per_s","dtype":null,"value":4.31e12}'
    echo '{"event":"peak","kind":"flops_per_s","dtype":"bf16","value":7.9e14}'
    ;;
*)
    echo "usage: suite.sh list|run|profile|peaks" >&2
    exit 2
    ;;
esac
