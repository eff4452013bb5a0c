#include <sotto/study/train/batch_share.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/optim/registry.h>
#include <sotto/study/train/privacy_plan.h>
#include <sotto/trainers/tasks/batch_shares.h>

namespace sotto::study {
namespace {

constexpr double kMostSpeed = 1e12;

std::vector<double> parse_speeds(const std::string& text, int nodes) {
  std::vector<double> speeds;
  speeds.reserve(static_cast<std::size_t>(nodes));
  for (std::string_view left = text;;) {
    const auto comma = left.find(',');
    const auto speed = parse_number<double>(left.substr(0, comma), kLeastSpeed, kMostSpeed);
    if (!speed) {
      refuse("batch_share", text,
             fmt::format("expected {}, or a speed for each node, as 4,4,1, from {:g} to {:g}",
                         kShareBySpeed, kLeastSpeed, kMostSpeed));
    }
    speeds.push_back(*speed);
    if (comma == std::string_view::npos) {
      break;
    }
    left.remove_prefix(comma + 1);
  }
  if (speeds.size() != static_cast<std::size_t>(nodes)) {
    refuse("batch_share", text,
           fmt::format("it has {} speeds, and the job {} nodes", speeds.size(), nodes));
  }
  return speeds;
}

/// Refuses what does not go with batches that differ.
void check_fits(const TrainOptions& o) {
  for (const auto& [setting, given, why] :
       {std::tuple("weight", !o.weight.empty(), "which weights nodes by something else"),
        std::tuple("join", !o.join.empty(), "by which a node's data last for its own rounds"),
        std::tuple("communication_interval", !o.groups.empty() && o.communication_interval > 1,
                   "where nodes in groups take steps between exchanges"),
        std::tuple("privacy_epsilon", wants_privacy(o),
                   "whose noise is for batches of one size")}) {
    if (given) {
      throw Error("batch_share", "it does not go with " + mention(setting) + ", " + why);
    }
  }
  const AlgorithmInfo& info = algorithm_info(o.algorithm);
  if (info.agreement != SettingsAgreement::required) {
    refuse("batch_share", o.batch_share,
           fmt::format("{} mixes models of neighbours, each as the graph weights it; take "
                       "allreduce or another algorithm that averages over all nodes",
                       info.name));
  }
}

}  // namespace

std::string speeds_text(std::span<const double> speeds) {
  std::string text;
  for (const double speed : speeds) {
    text += fmt::format("{}{:.4g}", text.empty() ? "" : ",", speed);
  }
  return text;
}

std::vector<std::size_t> batches_of_nodes(const TrainOptions& options, std::size_t batch,
                                          int nodes) {
  if (options.batch_share.empty()) {
    return {};
  }
  check_fits(options);
  if (options.batch_share == kShareBySpeed || batch == 0 || batch > kMostBatch) {
    return {};  // such a batch is refused elsewhere
  }
  const auto speeds = parse_speeds(options.batch_share, nodes);
  auto batches = share_examples(batch * speeds.size(), speeds);
  const bool even = std::ranges::adjacent_find(batches, std::not_equal_to<>()) == batches.end();
  return even ? std::vector<std::size_t>{} : std::move(batches);
}

}  // namespace sotto::study
