// Hyperparameters that several algorithms share.
#pragma once

#include <cstddef>
#include <string_view>

#include <sotto/base/ids.h>
#include <sotto/optim/hyperparameters.h>

namespace sotto {

/// η = min(cap, α^(−2/3) − 1), the rule of DeepSqueeze (arXiv:1907.07346), with the compressor's α
/// measured on Gaussian vectors. Deterministic, so that all nodes agree. Zero or less when the
/// compressor is no contraction.
double default_consensus_stepsize(const Compressor& compressor, std::size_t dimension, double cap);

/// default_consensus_stepsize with a cap of `Halves` halves.
template <int Halves>
double default_eta(const Compressor& compressor, std::size_t dimension) {
  return default_consensus_stepsize(compressor, dimension, 0.5 * Halves);
}

/// η, the step of the consensus, in the papers often γ. `derive` is a default_eta.
constexpr Hyperparameter consensus_stepsize(double (*derive)(const Compressor&, std::size_t)) {
  return {.key = "eta",
          .symbol = "η",
          .help = "how far to move to the neighbours; by default derived from the compressor",
          .kind = HyperparameterKind::real,
          .most = 1,
          .derive = derive,
          .setting = "consensus_stepsize"};
}

/// The key of freeze_step.
inline constexpr std::string_view kFreezeStep = "freeze";

/// T_w, after which Adam's variance is frozen. `fallback` says what happens without it: "auto", the
/// algorithm finds it or does without; empty, it must be given.
constexpr Hyperparameter freeze_step(std::string_view fallback) {
  return {.key = kFreezeStep,
          .symbol = "T_w",
          .help = "the number of exchanges of plain Adam before its variance is frozen",
          .why = "15 to 25 % of the run is usual; onebit-adam finds it by itself",
          .fallback = fallback,
          .setting = "freeze_step"};
}

/// The key of clip_to_median.
inline constexpr std::string_view kClip = "clip";
/// The value of `clip` with which it clips.
inline constexpr std::string_view kToMedian = "median";
/// All values of `clip`.
inline constexpr std::string_view kClips[] = {"none", kToMedian};

/// `clip`: nothing, or what nodes send is clipped to the median of its lengths
/// (exchange/median_clip.h). `help` says what it is that they send.
constexpr Hyperparameter clip_to_median(std::string_view help) {
  return {.key = kClip,
          .symbol = "HOW",
          .help = help,
          .kind = HyperparameterKind::choice,
          .choices = kClips,
          .fallback = "none",
          .for_equal_nodes = true};
}

/// The help of `clip` where each node sends one message to all others.
inline constexpr std::string_view kClipOfMessages =
    "median: no node's message counts for more than the median of their norms";
/// The help of `clip` where chunks of what nodes send meet at their owners (chunk_mean.h).
inline constexpr std::string_view kClipOfChunks =
    "median: of each chunk no node's part counts for more than the median of their norms";

/// Whether these hyperparameters have what nodes send clipped so.
inline bool clips_to_median(const Hyperparameters& given) { return given.text(kClip) == kToMedian; }

/// How often a node decodes each message of a round's first phase: where it clips once for the
/// lengths, and once more for the mean. Those of other phases it decodes once.
inline int decodings_of_messages(const Hyperparameters& given) {
  return clips_to_median(given) ? 2 : 1;
}

/// The usual T_w of a run with so many exchanges: 15 % of them, and at least 1.
constexpr Round usual_freeze_step(Round exchanges) {
  const auto part = static_cast<Round>(0.15 * static_cast<double>(exchanges));
  return part > 1 ? part : 1;
}

}  // namespace sotto
