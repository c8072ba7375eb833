#!/bin/bash
# Three hosts on one machine, to try a cluster: network namespaces with addresses of their own, process and mount namespaces
# with temporary folders of their own; hosts 2 and 3 do not see the workspace. Host 3 is killed in the middle if KILL seconds
# are given. Needs root. Usage: [KILL=20] hosts.sh WORKSPACE [OPTIONS OF opera run ...]
# The workspace is to lie in a folder that holds nothing else that opera or Python need.
set -euo pipefail
workspace=$(realpath "$1")
shift
folder=$(dirname "$workspace")
hosts=()

cleanup() {
    for pid in "${hosts[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    for n in 1 2 3; do ip netns del "opera$n" 2>/dev/null || true; done
    ip link del opera0 2>/dev/null || true
}
trap cleanup EXIT

ip link add opera0 type bridge
ip link set opera0 up
for n in 1 2 3; do
    ip netns add "opera$n"
    ip link add "opera0$n" type veth peer name eth0 netns "opera$n"
    ip link set "opera0$n" master opera0 up
    ip -n "opera$n" address add "10.213.0.$n/24" dev eth0
    ip -n "opera$n" link set eth0 up
    ip -n "opera$n" link set lo up
done

# on N COMMAND: what host N runs, /mnt being its own; when the process ends or is killed, so is all that it started.
on() {
    local n=$1 hide="true"
    shift
    if [ "$n" != 1 ]; then hide="mount -t tmpfs tmpfs '$folder'"; fi
    exec ip netns exec "opera$n" unshare --mount --uts --pid --fork --kill-child --mount-proc \
        sh -c "hostname host$n && mount -t tmpfs tmpfs /mnt && $hide && exec \"\$@\"" sh "$@"
}

export RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0 TMPDIR=/mnt
RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$(head -c 32 /dev/urandom | sha256sum | cut -d' ' -f1)
export RAY_AUTH_MODE RAY_AUTH_TOKEN
common="--object-store-memory 80000000 --disable-usage-stats"
for n in 2 3; do
    # shellcheck disable=SC2086
    (on "$n" bash -c "
        until (: < /dev/tcp/10.213.0.1/6379) 2>/dev/null; do sleep 0.5; done
        exec ray start --address 10.213.0.1:6379 --node-ip-address 10.213.0.$n --num-cpus 1 $common --block
    ") >/dev/null 2>&1 &
    hosts+=($!)
done
if [ -n "${KILL:-}" ]; then (sleep "$KILL" && kill -KILL "${hosts[1]}" && echo "host 3 is killed") & fi
on 1 bash -c '
    ray start --head --node-ip-address 10.213.0.1 --port 6379 --num-cpus 0 --include-dashboard=false '"$common"' >/dev/null
    sleep "${SETTLE:-15}"  # for hosts 2 and 3 to join; who is later joins later
    exec opera run --cluster 10.213.0.1:6379 --workspace "$@"
' sh "$workspace" "$@" &
hosts+=($!)
wait $!
