// What Gloo itself does to start a job: processes on this host that all connect to all, through
// gloo::rendezvous::Context::connectFullMesh and a store of files. One thread at a time.
#pragma once

namespace sotto::bench {

/// Seconds from before the first fork until the last process has passed a barrier after connecting;
/// the processes' end is not counted. Throws std::runtime_error when one fails.
double connect_gloo_mesh(int nodes);

}  // namespace sotto::bench
