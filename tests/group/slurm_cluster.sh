# Read by tests over Slurm (". slurm_cluster.sh"): a controller and four nodes of two cores on this host, each a slurmd with a host name, a
# /dev/shm and an /etc/hosts of its own. Needs root and Debian's packages slurmctld, slurmd, slurm-client and munge.
# slurm_begin FOLDER starts them, and has them ended with the script; slurm_end ends the script, with 0 unless fail was called.
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# skip REASON: the test cannot run here.
skip() {
  echo "left out: $1"
  exit 77
}

slurm_needs() {
  [ "$(id -u)" -eq 0 ] || skip "a Slurm of its own needs root"
  for slurm_part in slurmctld slurmd srun sbatch munged; do
    command -v $slurm_part >/dev/null || skip "there is no $slurm_part (packages slurmctld, slurmd, slurm-client and munge)"
  done
  unshare --uts --mount true 2>/dev/null || skip "nodes with host names of their own need unshare (package util-linux) and the right to it"
}

# slurm_settings PORT: nodes share the loopback address and differ in ports. Files of PMIx are named after job and step alone: TmpFS keeps
# those of different nodes apart.
slurm_settings() {
  cat <<END
ClusterName=zero
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$1
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm_folder/munge.socket
StateSaveLocation=$slurm_folder/state
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdSpoolDir=$slurm_folder/spool.%n
SlurmdPidFile=$slurm_folder/slurmd.%n.pid
TmpFS=$slurm_folder/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1
NodeName=n[1-4] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$(($1 + 1))-$(($1 + 4))] CPUs=2
PartitionName=low Nodes=n[1-4] Default=YES MaxTime=30 PriorityTier=1 PreemptMode=REQUEUE GraceTime=30
PartitionName=high Nodes=n[1-4] MaxTime=30 PriorityTier=2 PreemptMode=OFF
END
}

# slurm_start NAME PROGRAM...: it stays in the foreground, and is ended with the script.
slurm_start() {
  slurm_part=$1
  shift
  "$@" >"$slurm_folder/$slurm_part.log" 2>&1 &
  slurm_pids="$slurm_pids $!"
}

# slurm_node NAME: MPI names its files after the host, so nodes of one host name would take one another's.
slurm_node() {
  mkdir -p "$slurm_folder/tmp.$1" "$slurm_folder/spool.$1"
  # shellcheck disable=SC2016
  slurm_start "$1" unshare --uts --mount sh -c 'hostname "$1" && mount -t tmpfs tmpfs /dev/shm && mount --bind "$2/hosts" /etc/hosts &&
    exec slurmd -D -N "$1" -f "$2/slurm.conf"' sh "$1" "$slurm_folder"
}

slurm_begin() {
  slurm_folder=$1
  slurm_pids=
  PATH=$PATH:/usr/sbin:/sbin
  slurm_needs
  # Those of a Slurm that runs the test.
  for slurm_part in $(env | sed -nE 's/^((SLURM|SBATCH|SALLOC|SLURMD|PMIX?)_[A-Za-z0-9_]*)=.*/\1/p'); do unset "$slurm_part"; done
  rm -rf "$slurm_folder"
  mkdir -p "$slurm_folder/state" || exit 1
  trap slurm_down EXIT
  trap 'exit 130' INT TERM
  export SLURM_CONF="$slurm_folder/slurm.conf"
  slurm_settings $((20000 + $$ % 2000 * 5)) >"$SLURM_CONF"
  { cat /etc/hosts && echo "127.0.0.1 n1 n2 n3 n4"; } >"$slurm_folder/hosts"
  head -c 1024 /dev/urandom >"$slurm_folder/munge.key" && chmod 400 "$slurm_folder/munge.key" || exit 1
  slurm_start munged munged --foreground --force --key-file "$slurm_folder/munge.key" --socket "$slurm_folder/munge.socket" \
    --pid-file "$slurm_folder/munge.pid" --seed-file "$slurm_folder/munge.seed"
  slurm_start slurmctld slurmctld -D -f "$SLURM_CONF"
  for slurm_node in n1 n2 n3 n4; do slurm_node $slurm_node; done
  for _ in $(seq 150); do
    [ "$(sinfo -h -p low -t idle -o %D 2>/dev/null)" = 4 ] && return 0
    sleep 0.2
  done
  fail "the nodes did not come up"
  tail -n 5 "$slurm_folder"/*.log
  exit 1
}

slurm_alive() {
  for slurm_pid in $slurm_pids; do kill -0 "$slurm_pid" 2>/dev/null && return 0; done
  return 1
}

slurm_down() {
  scancel --full --signal=KILL --user=root 2>/dev/null
  # shellcheck disable=SC2086
  kill $slurm_pids 2>/dev/null
  for _ in $(seq 100); do
    slurm_alive || break
    sleep 0.1
  done
  # shellcheck disable=SC2086
  slurm_alive && kill -9 $slurm_pids 2>/dev/null
  wait
}

slurm_end() {
  echo "$failures failed"
  [ $failures -eq 0 ]
  exit
}
