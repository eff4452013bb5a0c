#include <sotto/study/train/measured_shares.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>
#include <sotto/base/message.h>
#include <sotto/study/train/batch_share.h>
#include <sotto/study/train/early_meeting.h>

namespace sotto::study {
namespace {

using Clock = std::chrono::steady_clock;

/// Gradients that are timed: so many at least, further ones until the time is spent.
constexpr std::size_t kLeastTimed = 3;
constexpr std::size_t kMostTimed = 50;
constexpr std::chrono::milliseconds kTiming{300};
/// Seconds of a gradient that is timed once, since the other nodes wait for what this one tells.
constexpr double kLong = 2;

/// Bytes of a list of speeds: each has 12 at most.
constexpr std::size_t kMostText = 12 * (std::size_t{1} << 16U);

Result<std::string> list_of(const std::vector<std::vector<std::byte>>& told) {
  std::vector<double> speeds;
  speeds.reserve(told.size());
  for (const auto& value : told) {
    ByteReader in(value);
    const auto speed = in.read<double>();
    if (!in.finished() || !std::isfinite(speed) || speed <= 0) {
      return Status(Fault::malformed,
                    fmt::format("node {} tells a speed that is none", speeds.size()));
    }
    speeds.push_back(speed);
  }
  const double fastest = speeds.empty() ? 1 : std::ranges::max(speeds);
  for (double& speed : speeds) {
    speed = std::max(speed / fastest, kLeastSpeed);
  }
  return speeds_text(speeds);
}

/// The speeds of all nodes, as node 0 lists them.
Result<std::string> exchange_speeds(StoreCollectives& nodes, double own) {
  ByteBuffer mine;
  mine.write(own);
  const auto told = nodes.gather("speed", mine.bytes());
  if (!told.ok()) {
    return told.status();
  }
  Result<std::string> listed = list_of(*told);
  if (!listed.ok()) {
    return listed.status();
  }
  ByteBuffer list;
  list.write_string(*listed);
  const auto all = nodes.broadcast("speeds", list.bytes());
  if (!all.ok()) {
    return all.status();
  }
  ByteReader in(*all);
  std::string text = in.read_string(kMostText);
  if (!in.finished()) {
    return Status(Fault::malformed, "node 0 tells a list of speeds that is none");
  }
  return text;
}

/// What this node's gradients take, at its own pace.
double own_speed(const TrainPlan& plan) {
  const OptimizerOptions& options = plan.run.optimizer;
  const auto task = plan.task_of(options.rank);
  std::vector<float> x = plan.run.start;
  if (x.empty()) {
    x.resize(task->dimension());
    task->initialize(x, options.seed);
  }
  return measure_speed(*task, plan.tasks->options().batch, x);
}

}  // namespace

double measure_speed(Task& task, std::size_t batch, std::span<const float> parameters) {
  std::vector<float> gradient(parameters.size());
  std::vector<double> seconds;
  seconds.reserve(kMostTimed);
  const auto timed = [&](Round round) {
    const auto from = Clock::now();
    (void)task.loss_and_gradient(round, parameters, gradient);
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  // The first one warms up caches and memory, of which a long one is independent.
  if (const double first = timed(0); first > kLong) {
    return static_cast<double>(batch) / first;
  }
  const auto end = Clock::now() + kTiming;
  while (seconds.size() < kLeastTimed || (seconds.size() < kMostTimed && Clock::now() < end)) {
    seconds.push_back(timed(seconds.size()));
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return static_cast<double>(batch) / std::max(*middle, 1e-9);
}

Result<TrainPlan> with_measured_shares(TrainPlan plan) {
  if (plan.options.batch_share != kShareBySpeed || !plan.launched) {
    return plan;
  }
  OptimizerOptions& options = plan.run.optimizer;
  open_store(options);
  const double own = own_speed(plan);
  const Result<std::string> speeds =
      meet_early(options, [own](StoreCollectives& nodes) { return exchange_speeds(nodes, own); });
  if (!speeds.ok()) {
    return speeds.status();
  }
  TrainOptions shared = plan.options;
  shared.batch_share = *speeds;
  TrainPlan made = make_train_plan(shared, plan.tasks->shared_data());
  made.run.optimizer.store = options.store;
  const auto& batches = made.tasks->options().batches;
  if (batches.empty()) {
    made.notices.push_back(fmt::format("nodes are equally fast, and take {} examples each",
                                       made.tasks->options().batch));
  } else {
    made.notices.push_back(fmt::format("nodes take {} examples a round, by their speeds, as with ",
                                       fmt::join(batches, ", ")) +
                           mention("batch_share", fmt::to_string(fmt::join(batches, ","))));
  }
  return made;
}

}  // namespace sotto::study
