// Runs the nodes of a local job as child processes that never outlive the call, nor the caller.
//
// The children are forked, so that they share what the parent has loaded; a caller must therefore
// hold no threads and no sockets yet. POSIX (Linux) only. One thread, one call at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>

namespace sotto {

/// The main function of one child. Its fault, or the Error that it throws, reaches the parent.
using NodeMain = std::function<Status(Rank)>;

/// Forks a child for each rank and waits for all. When one fails the others get `grace` to notice
/// by themselves, then they are ended. Returns the fault that explains the failure: a child that
/// was killed is named, with its signal. Throws the first Error that a child threw. Once `stop` is
/// true all children get SIGTERM, and those that catch it `farewell` to end by themselves; the
/// fault is then Fault::stopped.
Status run_processes(int nodes, const NodeMain& node_main, const std::atomic<bool>& stop,
                     std::chrono::milliseconds grace,
                     std::chrono::milliseconds farewell = std::chrono::milliseconds(500));

}  // namespace sotto
