#include "train_execution.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <sotto/comm/transport.h>
#include <sotto/comm/trust/peers_watch.h>
#include <sotto/console/signals.h>
#include <sotto/study/json/run_config.h>
#include <sotto/study/json/score.h>

#include "local_job.h"

namespace sotto::cli {
namespace {

/// For catch_stop_signals; on a terminal it begins a line, as a progress bar may stand there.
const char* stop_notice() {
  constexpr const char* kNotice =
      "\nsotto: stopping after this round; the same signal once more ends the run at once\n";
  return ::isatty(STDERR_FILENO) == 1 ? kNotice : kNotice + 1;
}

/// What node 0 says and returns in the end.
Json conclude(const study::TrainPlan& plan, TrainReport& report, const RunResult& result) {
  report.summary(result);
  Json json = train_json(result, train_config_json(study::settings_of(plan)));
  json["score"] = study::score_json(study::score_terms(plan), {.rounds = result.rounds,
                                                               .nodes = result.nodes,
                                                               .seconds = result.time.wall_s,
                                                               .accuracy = result.final.accuracy});
  if (const auto& data = plan.tasks->data().dataset; data && !data->names().classes.empty()) {
    json["classes"] = Json::array();
    for (const std::string& name : data->names().classes) {
      json["classes"].push_back(printable(name));
    }
  }
  return json;
}

/// Lets large blocks go back to the system when they are freed. A node frees some before it trains,
/// and with each evaluation; kept, they would double what a small algorithm's header states.
void give_freed_memory_back() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 20;
  (void)::mallopt(M_MMAP_THRESHOLD, kLarge);
  (void)::malloc_trim(0);  // what the parent had freed before the fork
#endif
}

/// One node of a job, which has this process to itself.
Result<Json> run_one(const study::TrainPlan& plan, const RunOptions& run, TrainReport& report,
                     const RunHooks& hooks) {
  give_freed_memory_back();
  const auto task = plan.task_of(run.optimizer.rank);
  const auto result = run_node(run, *task, hooks);
  if (!result.ok()) {
    return result.status();
  }
  return run.optimizer.rank == 0 ? conclude(plan, report, *result) : Json();
}

Result<Json> run_as_threads(const study::TrainPlan& plan, TrainReport& report, Observer& observer) {
  console::catch_stop_signals(stop_notice());
  const auto result = run_threads(plan.run, [&](Rank rank) { return plan.task_of(rank); },
                                  {.observer = &observer, .stop = &console::stop_requested()});
  if (!result.ok()) {
    return result.status();
  }
  return conclude(plan, report, *result);
}

Result<Json> run_as_processes(const study::TrainPlan& plan, TrainReport& report,
                              Observer& observer) {
  // Nodes that have nothing to save end at once, by the signal.
  const bool saves = !plan.run.checkpoint.empty();
  const std::atomic<bool> never{false};
  const auto node = [&](Rank rank, const std::shared_ptr<Store>& store) {
    if (saves) {
      catch_stop_signals(nullptr, console::SecondSignal::waits);
    }
    RunOptions run = plan.run;
    run.optimizer.rank = rank;
    run.optimizer.store = store;
    return run_one(plan, run, report,
                   {.observer = &observer, .stop = saves ? &console::stop_requested() : &never});
  };
  // As long as nodes may wait for each other in the round under way.
  return run_local_job(plan.run.optimizer.nodes, node, stop_notice(),
                       saves ? 2 * plan.run.optimizer.timeout : kLocalGrace);
}

Result<Json> run_as_planned(const study::TrainPlan& plan, TrainReport& report, Observer& observer) {
  if (plan.launched) {
    console::catch_stop_signals(stop_notice());
    std::optional<PeersWatch> watch;
    if (plan.run.optimizer.security) {
      watch.emplace(plan.peers, plan.run.optimizer.security->peers,
                    [](const PeersNews& news) { console::say(news.text); });
    }
    return run_one(plan, plan.run, report,
                   {.observer = &observer, .stop = &console::stop_requested()});
  }
  const auto all = transports();
  const bool processes = std::any_of(all.begin(), all.end(), [&](const TransportInfo& info) {
    return info.name == plan.run.optimizer.transport && info.processes;
  });
  return processes ? run_as_processes(plan, report, observer)
                   : run_as_threads(plan, report, observer);
}

}  // namespace

Result<Json> execute(const study::TrainPlan& plan, TrainReport& report, Observer& observer) {
  auto result = [&] {
    try {
      return run_as_planned(plan, report, observer);
    } catch (const std::exception& error) {
      observer.ended(Status(Fault::io, error.what()));
      throw;
    }
  }();
  observer.ended(result.status());
  return result;
}

}  // namespace sotto::cli
