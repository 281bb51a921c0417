#!/bin/sh
# Runs a program as 2 x 2 ranks on two "hosts" over Open MPI's TCP: network namespaces with host names of their own, joined by a cable.
#   netns_mpirun.sh [-x VARIABLE]... PROGRAM [ARGUMENTS...]
# ZERO_NETNS_RATE limits the cable in each direction, as tc writes rates (1gbit). ZERO_NETNS_MPIRUN names another mpirun. Always cleans up.
# Exit status: the program's; 77 when the machine cannot do this, with the reason.
set -u
skip() {
  echo "left out: $1"
  exit 77
}

# The launcher's agent: called with the host to reach and the command to run there.
if [ -n "${ZERO_NETNS_AGENT:-}" ]; then
  shift
  exec ip netns exec "$ZERO_NETNS_AGENT" unshare --uts sh -c 'hostname "$0" && exec sh -c "$*"' "$ZERO_NETNS_AGENT" "$@"
fi

exports=${ZERO_MPI_MODULE:+-x ZERO_MPI_MODULE}
while [ $# -gt 1 ] && [ "$1" = -x ]; do
  exports="$exports -x $2"
  shift 2
done
[ $# -ge 1 ] || {
  echo "usage: netns_mpirun.sh [-x VARIABLE]... PROGRAM [ARGUMENTS...]" >&2
  exit 2
}
mpirun=${ZERO_NETNS_MPIRUN:-$(command -v mpirun.openmpi || command -v mpirun)}
[ "$(id -u)" -eq 0 ] || skip "two network namespaces need root"
command -v ip >/dev/null || skip "two network namespaces need ip (package iproute2)"
command -v unshare >/dev/null || skip "host names of their own need unshare (package util-linux)"
[ -n "$mpirun" ] && "$mpirun" --version 2>/dev/null | grep -q -E 'Open MPI|OpenRTE' || skip "no mpirun of Open MPI (package openmpi-bin)"

# Names of this run alone, of the hosts too: Open MPI names its session folders after them.
a=zero-$$-a
b=zero-$$-b
cleanup() {
  for space in "$a" "$b"; do
    for pid in $(ip netns pids "$space" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
    ip netns del "$space" 2>/dev/null
  done
  rm -rf "/tmp/ompi.$a.$(id -u)" "/tmp/ompi.$b.$(id -u)"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

join() {
  ip netns add "$a" && ip netns add "$b" &&
    ip link add zero0 netns "$a" type veth peer name zero0 netns "$b" &&
    ip -n "$a" addr add 10.77.0.1/24 dev zero0 && ip -n "$b" addr add 10.77.0.2/24 dev zero0 &&
    ip -n "$a" link set lo up && ip -n "$b" link set lo up &&
    ip -n "$a" link set zero0 up && ip -n "$b" link set zero0 up
}
shape() {
  for space in "$a" "$b"; do
    tc -n "$space" qdisc add dev zero0 root tbf rate "$ZERO_NETNS_RATE" burst 256kb latency 50ms || return 1
  done
}
reason=$(join 2>&1) || skip "network namespaces cannot be made here: $reason"
[ -z "${ZERO_NETNS_RATE:-}" ] || reason=$(shape 2>&1) || skip "the cable cannot be slowed down: $reason"

script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
# The agent must be executable, which a script in a source tree may not be. Release 5 has other names for the launcher's settings.
case $("$mpirun" --version 2>/dev/null) in
  *') 4.'*)
    set -- --mca plm rsh --mca plm_rsh_agent "sh $script" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include 10.77.0.0/24 \
      --mca btl self,vader,tcp "$@"
    ;;
  *)
    set -- --prtemca plm ssh --prtemca plm_ssh_agent "sh $script" --prtemca plm_ssh_no_tree_spawn 1 --prtemca prte_if_include 10.77.0.0/24 \
      --mca btl self,sm,tcp "$@"
    ;;
esac
ZERO_NETNS_AGENT=$b OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  ip netns exec "$a" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$a" \
  "$mpirun" --host 10.77.0.1:2,10.77.0.2:2 -n 4 --map-by ppr:2:node:oversubscribe $exports \
  --mca pml ob1 --mca btl_tcp_if_include 10.77.0.0/24 "$@"
