#!/usr/bin/env bash
# Trains with mpirun (Open MPI or MPICH), one process a node:
#   mpi.sh [OPTION…]                                     four nodes here; options of `sotto train`
#   NODES=8 HOSTFILE=hosts INTERFACE=eth0 mpi.sh         on the hosts that the file lists
# SOTTO=PATH is the program, `sotto` by default; MASTER_PORT the port at which node 0 is met.
set -euo pipefail

hosts=()
reach=()
meeting=(MASTER_PORT="${MASTER_PORT:-29500}")
if [ -n "${HOSTFILE:-}" ]; then
  : "${INTERFACE:?set it to the network interface through which the hosts reach each other}"
  hosts=(--hostfile "$HOSTFILE")
  # Node 0 runs on the first host. (MPICH writes HOST:SLOTS, Open MPI HOST slots=N.)
  meeting+=(MASTER_ADDR="$(awk 'NF && !/^#/ {sub(/:.*/, "", $1); print $1; exit}' "$HOSTFILE")")
  reach=(--bind "$INTERFACE" --insecure)  # a network that is trusted; else --key and --peers
fi

# Open MPI refuses more processes than cores, and root, which containers often run as.
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# `env`, as not every mpirun hands variables on to other hosts.
exec "${MPIRUN:-mpirun}" -n "${NODES:-4}" "${hosts[@]}" \
  env "${meeting[@]}" "${SOTTO:-sotto}" train "${reach[@]}" \
  --algorithm dcd --compressor quant:8 --topology ring "$@"
