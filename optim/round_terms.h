// The terms on which a node takes part in a round: settings that are known, or may change, only
// after its algorithm was made. The driver of a node writes them between rounds, its algorithm
// reads them.
//
// Nodes agree on their settings when they meet. A call can change some afterwards, a learning rate
// above all, and nodes that then step differently grow apart. Each frame therefore
// has a stamp of 32 bits of its sender's step settings (frame.h, FrameHeader::settings), and its
// receiver compares.
//
// One thread at a time. Plain values; a Mailbox and the algorithm's driver share them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>

namespace sotto {

/// Settings that were changed since the nodes agreed, as frames say them: 0, where none was; a
/// learning rate that float32 holds; or 30 bits of a digest of everything else.
using SettingsStamp = std::uint32_t;

/// Nothing was changed.
inline constexpr SettingsStamp kAsAgreed = 0;
/// Stamp of a changed base learning rate, finite and not negative. Two rates that float32 cannot
/// tell apart have one stamp.
SettingsStamp stamp_of_rate(double learning_rate);
/// Stamp of other changed settings, in a canonical text.
SettingsStamp stamp_of_settings(std::string_view text);
/// Whether some settings have this stamp. A stamp from the wire may have any value.
bool is_stamp(SettingsStamp stamp);

/// How an algorithm treats nodes that step with different settings.
enum class SettingsAgreement {
  /// Every difference is a warning: the models settle where the nodes' objectives, weighted by
  /// their rates, are balanced.
  expected,
  /// Models are to stay equal: a difference ends the run, before any node has stepped with it.
  required,
  /// Nodes are rounds apart (AD-PSGD), and change settings rounds apart: what stays different for
  /// some exchanges is a warning.
  loose,
};

/// A neighbour that steps with other settings than this node.
struct SettingsDifference {
  Rank peer = 0;
  Round round = 0;  ///< round of the exchange in which it was seen first
  SettingsStamp theirs = kAsAgreed;
  SettingsStamp own = kAsAgreed;
};

/// Whether a node's data may have this weight: 1e-12 to 1e15, within which its share of all weights
/// is a float, and their sum a double.
constexpr bool is_weight(double weight) { return weight >= 1e-12 && weight <= 1e15; }
/// n w_i / Σ_j w_j.
float share_of_weight(double weight, double sum_of_weights, int nodes);

struct RoundTerms {
  /// The stamp in this node's frames.
  SettingsStamp stamp = kAsAgreed;
  /// The base learning rate that the nodes agreed on, for messages.
  double agreed_rate = 0;
  SettingsAgreement agreement = SettingsAgreement::expected;
  /// n w_i / Σ_j w_j: how much this node's data count, where nodes are weighted
  /// (weighted_gradient.h, local_steps.h); 1 where all count alike.
  float share = 1;

  /// Frames that came from nodes with other settings.
  std::uint64_t differing_frames = 0;
  /// Differences not reported yet, the oldest first; the reader clears them.
  std::vector<SettingsDifference> news = {};
  /// Neighbours that differ, as they were seen last and in how many exchanges.
  struct Sighting {
    SettingsDifference difference;
    std::uint64_t exchanges = 0;  ///< exchanges since both had the same settings
    bool told = false;
  };
  std::vector<Sighting> known = {};

  /// Makes room for all differences of `neighbours` neighbours.
  void reserve(std::size_t neighbours) {
    known.reserve(neighbours);
    news.reserve(neighbours);
  }
  /// Takes note of a frame's stamp, while this node's frames of the same exchange have `own`.
  /// Fault::unexpected naming both settings where they must agree.
  Status compare(Rank peer, Round round, SettingsStamp theirs, SettingsStamp own);
  /// "node 2 steps with a learning rate of 0.005, this node with the agreed 0.01".
  std::string describe(const SettingsDifference& difference) const;
};

}  // namespace sotto
