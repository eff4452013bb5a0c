#!/bin/sh
# Stands in for ssh where mpirun starts its daemons: runs a command on a host of the emulated
# network.
#   mpi_agent.sh FOLDER HOST COMMAND…
# FOLDER/HOST is a link to the host's network namespace. Each host has a name of its own: Open MPI
# takes hosts of one name for one host.
set -eu
folder=$1
host=$2
shift 2
exec nsenter --net="$folder/$host" unshare --uts sh -c 'hostname "$1"; shift; eval "$*"' sh \
  "host-$(echo "$host" | tr . -)" "$@"
