// From the settings of `sotto train` to one node of an all-reduce whose nodes come and go. Pure
// function but for reading a key; thread-safe.
#pragma once

#include <optional>

#include <sotto/base/ids.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// What the node does with the settings `given` of its own, and computes in a run of `steps`
/// gradients; `timeout_s` in seconds, none: the default of ElasticSettings. Throws Error for a
/// setting that such a run does not have.
ElasticOptions make_elastic_options(const TrainOptions& options, const ElasticSettings& given,
                                    Round steps, std::optional<double> timeout_s);

}  // namespace sotto::study
