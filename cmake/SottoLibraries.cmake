# The libraries of sotto::sotto: each after those that it is built on. Everything that lists them
# reads this: targets, packages, pkg-config files, documents.
set(SOTTO_LIBRARIES
    base
    kernels
    compress
    topology
    optim
    groups
    comm
    trainers
    sim
    sites_core
    sites_roster
    sites_epochs
    sites_process
    sites_live
    sites_simulated)
