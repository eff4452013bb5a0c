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

/// What a node was asked for, and what it found for that.
struct Choice {
  std::string asked;
  std::string found;
};

Result<Choice> read_choice(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Choice choice = {.asked = in.read_string(kMostSpec), .found = in.read_string(kMostSpec)};
  if (!in.finished()) {
    return Status(Fault::malformed, "a node tells a compressor that is none");
  }
  return choice;
}

/// What node 0 found, where all nodes have the budget of `own`; other nodes may have found another
/// compressor for it. A budget that differs is refused at all nodes.
Result<std::string> of_node_0(StoreCollectives& nodes, const Choice& own) {
  ByteBuffer out;
  out.write_string(own.asked);
  out.write_string(own.found);
  const auto told = nodes.gather("compressor", out.bytes());
  if (!told.ok()) {
    return told.status();
  }
  std::string chosen;
  for (std::size_t rank = 0; rank < told->size(); ++rank) {
    Result<Choice> choice = read_choice((*told)[rank]);
    if (!choice.ok()) {
      return choice.status();
    }
    if (choice->asked != own.asked) {
      return Status(Fault::unexpected,
                    fmt::format("compressor: node {} was started with {}, and this node with {}: "
                                "give all the same",
                                rank, choice->asked, own.asked));
    }
    if (rank == 0) {
      chosen = std::move(choice->found);
    }
  }
  return chosen;
}

}  // namespace

Result<TrainPlan> with_agreed_compressor(TrainPlan plan) {
  if (!plan.launched || !compressor_budget(plan.options.compressor)) {
    return plan;
  }
  OptimizerOptions& options = plan.run.optimizer;
  const Result<std::string> chosen = meet_early(options, [&](StoreCollectives& nodes) {
    return of_node_0(nodes, {.asked = plan.options.compressor, .found = options.compressor});
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
