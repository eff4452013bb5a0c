#include <sotto/study/train/auto_compressor.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule.h>

namespace sotto::study {
namespace {

constexpr std::string_view kAuto = "auto:";
constexpr Round kFirstSteps = 50;   ///< before updates look as they will
constexpr Round kMostBetween = 50;  ///< steps of a movement that is looked at
constexpr std::size_t kMovements = 4;

/// A node that trains alone.
class LoneNode {
 public:
  LoneNode(const StepRuleOptions& rule, Task& task, std::span<const float> start)
      : task_(task),
        rule_(make_step_rule(rule)),
        x_(start.begin(), start.end()),
        gradient_(x_.size()) {
    rule_->resize(task.layout());
  }

  void step() {
    (void)task_.loss_and_gradient(round_, x_, gradient_);
    const Status status = rule_->direction(round_, x_, gradient_, gradient_);
    if (!status.ok()) {
      refuse("compressor", "auto",
             fmt::format("the model diverges while updates are measured: {}", status.message()));
    }
    for (std::size_t k = 0; k < x_.size(); ++k) {
      x_[k] -= gradient_[k];
    }
    ++round_;
  }

  /// How the model moves in this many steps.
  std::vector<float> movement(Round steps) {
    std::vector<float> moved = x_;
    for (Round k = 0; k < steps; ++k) {
      step();
    }
    for (std::size_t k = 0; k < x_.size(); ++k) {
      moved[k] = x_[k] - moved[k];
    }
    return moved;
  }

 private:
  Task& task_;
  const std::unique_ptr<StepRule> rule_;
  std::vector<float> x_;
  std::vector<float> gradient_;
  Round round_ = 0;
};

/// The encodings whose contract the algorithm takes.
std::vector<std::string> encodings_for(const AlgorithmInfo& info, const OptimizerOptions& options,
                                       std::size_t dimension) {
  std::vector<std::string> taken;
  for (const std::string& encoding : budget_encodings()) {
    const Contract contract = make_compressor(encoding, info.contract)->contract(dimension);
    if (contract.meets(info.contract) || options.allow_contract_violation) {
      taken.push_back(encoding);
    }
  }
  if (taken.size() < 2) {
    refuse("compressor", options.compressor,
           fmt::format("of the encodings that it chooses from, {}, {} takes {}; name a compressor",
                       fmt::join(budget_encodings(), ", "), info.name,
                       taken.empty() ? "none" : "full precision only"));
  }
  return taken;
}

void check_job(const AlgorithmInfo& info, const OptimizerOptions& options) {
  if (!info.compressors.family.empty()) {
    refuse("compressor", options.compressor,
           fmt::format("{} takes {} only; auto is for algorithms that take any compressor",
                       info.name, info.compressors.family));
  }
  if (info.compressors.of_chunks) {
    refuse("compressor", options.compressor,
           fmt::format("{} encodes chunks of the model, which are not along tensors; name one "
                       "compressor, such as quant:4",
                       info.name));
  }
  if (!options.groups.empty() || options.streaming.on() || options.buckets.value_or(1) > 1) {
    refuse("compressor", options.compressor,
           "it is for messages of the whole model: not with groups, fragments or buckets; name a "
           "compressor");
  }
  if (options.privacy) {
    refuse("compressor", options.compressor,
           "it is chosen by gradients of node 0's data, which the privacy budget would not count; "
           "name a compressor");
  }
}

}  // namespace

std::optional<std::size_t> compressor_budget(std::string_view spec) {
  if (!spec.starts_with(kAuto)) {
    return std::nullopt;
  }
  const std::string_view figure = spec.substr(kAuto.size());
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(figure.data(), figure.data() + figure.size(), bytes);
  if (error != std::errc() || end != figure.data() + figure.size() || bytes == 0) {
    refuse("compressor", spec, "BYTES in auto:BYTES is a positive whole number, as in auto:20000");
  }
  return bytes;
}

BudgetedCompressor choose_compressor(const OptimizerOptions& options, Task& task,
                                     std::span<const float> start) {
  const std::size_t bytes = compressor_budget(options.compressor).value();
  const AlgorithmInfo& info = algorithm_info(options.algorithm);
  check_job(info, options);
  LoneNode node(options.step_rule, task, start);
  for (Round k = 0; k < kFirstSteps; ++k) {
    node.step();
  }
  const Round between = std::clamp<Round>(options.communication_interval, 1, kMostBetween);
  std::vector<std::vector<float>> movements(kMovements);
  for (auto& movement : movements) {
    movement = node.movement(between);
  }
  return compressor_within(bytes, movements, task.layout(),
                           encodings_for(info, options, start.size()), info.contract,
                           static_cast<std::size_t>(info.encodings_a_frame));
}

}  // namespace sotto::study
