// A run in few words: "dcd quant:8 torus:2x4 lr=0.05". Pure functions.
#pragma once

#include <string_view>

#include "train_options.h"

namespace sotto::cli {

/// `shared` with what the words say: first the algorithm, then in any order a compressor, a
/// topology, and settings of `sotto train` as NAME=VALUE. Throws Error naming the word that is
/// wrong.
TrainOptions parse_run(std::string_view words, const TrainOptions& shared);

}  // namespace sotto::cli
