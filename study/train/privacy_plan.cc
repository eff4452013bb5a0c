#include <sotto/study/train/privacy_plan.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/study/units.h>
#include <sotto/trainers/settings/privacy_settings.h>

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

/// The noise of this node's sums in a scaling: of its own ones where they are named, else the least
/// of all.
double noise_of_sums(const TrainOptions& o, const SharedScaling& scaling) {
  if (!o.own_sums.empty()) {
    return read_table_sums("own_sums", o.own_sums).privacy.noise_multiplier;
  }
  return std::ranges::min_element(scaling.sites, {}, &ScalingSource::noise_multiplier)
      ->noise_multiplier;
}

/// What a scaling told of the node's data.
std::vector<GaussianStep> told_by(const TrainOptions& o, const SharedScaling* scaling) {
  if (scaling == nullptr || scaling->sites.empty()) {
    return {};
  }
  if (privacy_unit_of(o) == PrivacyUnit::update) {
    refuse("scaling", o.scaling,
           "its noise hides one row of a table, and the privacy unit is all data of a node; take "
           "the unit example, or a scaling that was not computed from the data");
  }
  const double noise = noise_of_sums(o, *scaling);
  if (noise > 0) {
    return {{.noise_multiplier = noise, .sampling_rate = 1}};
  }
  refuse("scaling", o.scaling,
         o.own_sums.empty()
             ? "sums without noise went into it, which no privacy budget covers; if those of this "
               "node have noise, name their file with " +
                   mention("own_sums")
             : SettingText("this node's sums in it have no noise, which no privacy budget covers"));
}

}  // namespace

std::optional<SharedScaling> scaling_of(const TrainOptions& o) {
  if (o.scaling.empty()) {
    if (!o.own_sums.empty()) {
      refuse("own_sums", o.own_sums,
             "it is for a scaling of several sites: give " + mention("scaling") + " too");
    }
    return std::nullopt;
  }
  SharedScaling scaling = read_scaling("scaling", o.scaling);
  if (!o.own_sums.empty()) {
    const std::string digest = read_table_sums("own_sums", o.own_sums).digest;
    if (std::ranges::find(scaling.sites, digest, &ScalingSource::sums) == scaling.sites.end()) {
      refuse("own_sums", o.own_sums,
             fmt::format("these sums did not go into {}, whose file lists the SHA-256 of all that "
                         "did",
                         o.scaling));
    }
  }
  return scaling;
}

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
                                           Round& rounds, const SharedScaling* scaling) {
  if (!wants_privacy(o)) {
    return std::nullopt;
  }
  PoissonSample sample;
  if (privacy_unit_of(o) == PrivacyUnit::example) {
    sample = {tasks.sampling_rate(), static_cast<double>(tasks.options().batch)};
  }
  auto made = privacy_of(o, sample, rounds, told_by(o, scaling));
  made->test_seed = noise_seed(o);
  rounds = std::min(rounds, allowed_steps(*made));
  return made;
}

void warn_of_privacy(const TrainOptions& o, const std::optional<PrivacyOptions>& privacy,
                     const TaskFactory& tasks, Round asked, Round rounds,
                     std::vector<SettingText>& warnings) {
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
