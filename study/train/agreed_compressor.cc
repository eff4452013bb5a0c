#include <sotto/study/train/agreed_compressor.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/study/train/auto_compressor.h>
#include <sotto/study/train/early_meeting.h>

namespace sotto::study {
namespace {

/// Bytes of a specification: a rule for each of many tensors.
constexpr std::size_t kMostSpec = std::size_t{1} << 24U;

/// At node 0, once all have told what they were asked for: what is wrong with that; empty: nothing.
std::string difference_in(std::span<const std::vector<std::byte>> asked, const std::string& own) {
  for (std::size_t rank = 0; rank < asked.size(); ++rank) {
    ByteReader in(asked[rank]);
    const std::string there = in.read_string(kMostSpec);
    if (!in.finished() || there != own) {
      return fmt::format(
          "compressor: node {} was started with {}, and node 0 with {}: give all the "
          "same",
          rank, in.finished() ? there : "none", own);
    }
  }
  return {};
}

/// What node 0 found, where all nodes have the same budget `asked`; other nodes may have `found`
/// another compressor for it. Budgets that differ are refused at all nodes.
Result<std::string> of_node_0(StoreCollectives& nodes, const std::string& asked,
                              const std::string& found) {
  ByteBuffer own;
  own.write_string(asked);
  const auto all = nodes.gather("budget", own.bytes());
  if (!all.ok()) {
    return all.status();
  }
  ByteBuffer answer;  // which counts at node 0
  answer.write_string(difference_in(*all, asked));
  answer.write_string(found);
  const auto told = nodes.broadcast("compressor", answer.bytes());
  if (!told.ok()) {
    return told.status();
  }
  ByteReader in(*told);
  const std::string difference = in.read_string(kMostSpec);
  std::string spec = in.read_string(kMostSpec);
  if (!in.finished()) {
    return Status(Fault::malformed, "node 0 tells a compressor that is none");
  }
  if (!difference.empty()) {
    return Status(Fault::unexpected, difference);
  }
  return spec;
}

}  // namespace

Result<TrainPlan> with_agreed_compressor(TrainPlan plan) {
  if (!plan.launched || !compressor_budget(plan.options.compressor)) {
    return plan;
  }
  OptimizerOptions& options = plan.run.optimizer;
  const Result<std::string> chosen = meet_early(options, [&](StoreCollectives& nodes) {
    return of_node_0(nodes, plan.options.compressor, options.compressor);
  });
  if (!chosen.ok()) {
    return chosen.status();
  }
  if (*chosen == options.compressor) {
    return plan;
  }
  TrainOptions same = plan.options;
  same.compressor = *chosen;
  TrainPlan made = make_train_plan(same, plan.tasks->shared_data());
  made.options = plan.options;
  made.run.optimizer.store = options.store;
  return made;
}

}  // namespace sotto::study
