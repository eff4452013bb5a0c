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
    sites_nodes
    sites_process
    sites_elastic
    sites_faults
    sites_simulated)

# Components that are libraries apart, each with the variable that says whether it is built:
# find_package asks for them by name, and their targets are installed as sottoNAMETargets, NAME with
# a capital.
set(SOTTO_COMPONENTS
    c=SOTTO_BUILD_BINDINGS
    torch=SOTTO_HAVE_TORCH
    observe=SOTTO_HAVE_OBSERVE
    study=SOTTO_HAVE_STUDY
    cuda=SOTTO_HAVE_CUDA)
