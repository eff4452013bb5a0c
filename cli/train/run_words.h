// A run in few words: "dcd quant:8 torus:2x4 lr=0.05". Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train_options.h"

namespace sotto::cli {

/// `shared` with what the words say: first the algorithm, then in any order a compressor, a
/// topology, and settings of `sotto train` as NAME=VALUE. Throws Error naming the word that is
/// wrong.
TrainOptions parse_run(std::string_view words, const TrainOptions& shared);

/// The same as options of `sotto train`, behind those of `shared` ("--lr=0.1"), whose length the
/// words replace if they have their own. Throws Error as parse_run does.
std::vector<std::string> train_words(std::string_view words,
                                     const std::vector<std::string>& shared);

}  // namespace sotto::cli
