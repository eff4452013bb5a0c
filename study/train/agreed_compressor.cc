#include <sotto/study/train/agreed_compressor.h>

#include <cstddef>
#include <string>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/study/train/auto_compressor.h>
#include <sotto/study/train/early_meeting.h>

namespace sotto::study {
namespace {

/// Bytes of a specification: a rule for each of many tensors.
constexpr std::size_t kMostSpec = std::size_t{1} << 24U;

/// What node 0 tells for all, who may have found another one.
Result<std::string> of_node_0(StoreCollectives& nodes, const std::string& found) {
  ByteBuffer own;
  own.write_string(found);
  const auto told = nodes.broadcast("compressor", own.bytes());
  if (!told.ok()) {
    return told.status();
  }
  ByteReader in(*told);
  std::string spec = in.read_string(kMostSpec);
  if (!in.finished()) {
    return Status(Fault::malformed, "node 0 tells a compressor that is none");
  }
  return spec;
}

}  // namespace

Result<TrainPlan> with_agreed_compressor(TrainPlan plan) {
  if (!plan.launched || !compressor_budget(plan.options.compressor)) {
    return plan;
  }
  OptimizerOptions& options = plan.run.optimizer;
  const Result<std::string> chosen = meet_early(
      options, [&](StoreCollectives& nodes) { return of_node_0(nodes, options.compressor); });
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
