// --batch-share: nodes that compute faster take more of a step's examples, so that all are done at
// one time. The mean of their gradients, each weighted by its examples, is that of a step in which
// all take as many. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// The value of --batch-share that has speeds measured.
inline constexpr std::string_view kShareBySpeed = "speed";

/// The least speed, where the fastest is 1: a node that is slower has one example anyway.
inline constexpr double kLeastSpeed = 1e-6;

/// Speeds as --batch-share takes them, "4,4,1": four digits of each.
std::string speeds_text(std::span<const double> speeds);

/// The examples that each node takes a round, `batch` in the mean, by rank; empty: all take as
/// many, as they do without the setting and with equal speeds. Speeds that are still to be measured
/// count as equal. Throws Error for other speeds than one for each node, and with settings that
/// weight nodes or count examples themselves.
std::vector<std::size_t> batches_of_nodes(const TrainOptions& options, std::size_t batch,
                                          int nodes);

}  // namespace sotto::study
