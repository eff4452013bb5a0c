#include <sotto/study/privacy_plan.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/unit_text.h>
#include <sotto/trainers/privacy_settings.h>

namespace sotto::study {
namespace {

std::size_t fewest_examples(const TaskFactory& tasks) {
  const auto examples = tasks.examples_per_node();
  return examples.empty() ? 0 : *std::min_element(examples.begin(), examples.end());
}

/// Empty: from secrets of the system.
std::optional<std::uint64_t> noise_seed(const TrainOptions& o) {
  return o.privacy_seed || !o.simulated ? o.privacy_seed : std::optional(o.seed);
}

}  // namespace

std::optional<ExampleClipping> example_clipping(const TrainOptions& o) {
  if (!wants_privacy(o) || privacy_unit_of(o) != PrivacyUnit::example) {
    return std::nullopt;
  }
  if (!(*o.clip_norm > 0)) {
    refuse("clip_norm", fmt::to_string(*o.clip_norm), "it must be positive, e.g. 1");
  }
  return ExampleClipping{*o.clip_norm, noise_seed(o)};
}

std::optional<PrivacyOptions> plan_privacy(const TrainOptions& o, const TaskFactory& tasks,
                                           Round& rounds) {
  if (!wants_privacy(o)) {
    return std::nullopt;
  }
  PoissonSample sample;
  if (privacy_unit_of(o) == PrivacyUnit::example) {
    sample = {tasks.sampling_rate(), static_cast<double>(tasks.options().batch)};
  }
  auto made = privacy_of(o, sample, rounds);
  made->test_seed = noise_seed(o);
  rounds = std::min(rounds, allowed_steps(*made));
  return made;
}

void warn_of_privacy(const TrainOptions& o, const std::optional<PrivacyOptions>& privacy,
                     const TaskFactory& tasks, Round asked, Round rounds,
                     std::vector<Message>& warnings) {
  if (!privacy) {
    return;
  }
  if (o.privacy_seed) {
    warnings.push_back(mention("privacy_seed") + ": " + std::string(kSeedHidesNothing));
  }
  if (rounds < asked) {
    warnings.push_back(
        mention("privacy_epsilon", fmt::to_string(*privacy->epsilon)) +
        fmt::format(": the budget lasts for {} of {}; more noise, or a smaller batch, make it last",
                    rounds, counted(asked, "round")));
  }
  const std::size_t examples = fewest_examples(tasks);
  if (privacy->unit == PrivacyUnit::example &&
      privacy->delta * static_cast<double>(examples) >= 1) {
    warnings.push_back(mention("privacy_delta", fmt::to_string(privacy->delta)) +
                       fmt::format(": a node has {}; delta should lie well below one in so many",
                                   counted(examples, "example")));
  }
}

}  // namespace sotto::study
