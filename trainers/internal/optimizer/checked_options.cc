#include "checked_options.h"

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/round_terms.h>
#include <sotto/trainers/launch/launcher.h>

namespace sotto::internal {

OptimizerOptions with_place(OptimizerOptions options) {
  if (options.nodes == 0) {
    const LaunchedNode launched =
        launched_node("nodes", "set the number of nodes and this node's rank");
    options.nodes = launched.nodes;
    options.rank = launched.rank;
    if (options.rendezvous.empty() && options.nodes > 1) {
      options.rendezvous = launched.rendezvous;
    }
  }
  if (options.nodes == 1 && options.rendezvous.empty()) {
    options.rendezvous = "memory:";  // there is nobody to meet, and no port to take for it
  }
  if (options.nodes < 1) {
    refuse("nodes", fmt::format("{}", options.nodes), "at least one node is needed");
  }
  if (options.rank < 0 || options.rank >= options.nodes) {
    refuse("rank", fmt::format("{}", options.rank),
           fmt::format("it must be 0 to {}", options.nodes - 1));
  }
  if (options.weight && !is_weight(*options.weight)) {
    refuse("weight", fmt::format("{}", *options.weight), "it must be from 1e-12 to 1e15");
  }
  if (options.join != Join::none && options.privacy) {
    refuse("join", join_name(options.join),
           "a round without data would cost privacy: give all nodes the same number of steps");
  }
  if (options.timeout <= options.timeout.zero()) {
    refuse("timeout", fmt::format("{} ms", options.timeout.count()), "it must be positive");
  }
  return options;
}

void require_reached(const OptimizerOptions& options, std::span<const float> values,
                     std::string_view what) {
  if (options.accelerator && !values.empty() && !options.accelerator->reaches(values.data())) {
    refuse(what, "memory elsewhere",
           fmt::format("the accelerator, {}, wants them in its device's memory",
                       options.accelerator->name()));
  }
}

void check_accelerator(const OptimizerOptions& options, std::span<const float> parameters) {
  if (!options.accelerator) {
    return;
  }
  if (const Status status = options.accelerator->finish(); !status.ok()) {
    throw Error(status.message());
  }
  require_reached(options, parameters, "parameters");
  const auto refuse_with = [&](std::string_view what) {
    refuse("accelerator", options.accelerator->name(),
           fmt::format("{} is for vectors of the host; leave one of the two out", what));
  };
  if (options.codec_threads != 1) {
    refuse_with("codec_threads");
  }
  if (options.metered) {
    refuse_with("metered");
  }
}

}  // namespace sotto::internal
