// The nodes of a job on this machine as processes, and the result that node 0 has in the end. One
// call at a time, before there are threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <sotto/base/ids.h>
#include <sotto/base/json.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto::cli {

/// What one node does, in a process of its own; `store` is where the nodes meet. The result of node
/// 0 is the job's, that of others is ignored.
using LocalNode = std::function<Result<Json>(Rank rank, const std::shared_ptr<Store>& store)>;

/// How long the nodes of a local job may take to notice that one of them died.
inline constexpr std::chrono::milliseconds kLocalGrace{1'000};

/// Runs the nodes and waits for all. Stop signals are caught, and the first writes `notice`, which
/// must live as long as the process; nodes then have `farewell` to end by themselves. Throws what
/// run_processes throws.
Result<Json> run_local_job(int nodes, const LocalNode& node, const char* notice = nullptr,
                           std::chrono::milliseconds farewell = kLocalGrace);

}  // namespace sotto::cli
