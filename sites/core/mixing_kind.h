// How sites bring their models together, and the names that settings and files have for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sotto::sites {

/// How parcels bring the models of sites together.
enum class MixingKind : std::uint8_t {
  push_sum,     ///< mass moves along trust, one-sided or mutual (push_sum_mixing.h)
  gossip,       ///< public copies along mutual trust, averaged or by a robust rule
                ///< (gossip_mixing.h)
  secure_mean,  ///< the mean of all, of which each model is hidden (secure_mixing.h)
};

/// A kind and its name.
struct MixingName {
  MixingKind kind;
  std::string_view name;
};
/// All kinds.
inline constexpr auto kMixingNames =
    std::to_array<MixingName>({{MixingKind::push_sum, "push-sum"},
                               {MixingKind::gossip, "gossip"},
                               {MixingKind::secure_mean, "secure-mean"}});

/// The name of a kind.
constexpr std::string_view name_of(MixingKind kind) {
  return std::ranges::find(kMixingNames, kind, &MixingName::kind)->name;
}

/// Parcels under way to a peer with which sites in step keep pace. With secure sums a site that was
/// away has those of two rounds under way when the next one is due.
constexpr std::size_t usual_window(MixingKind kind) {
  return kind == MixingKind::secure_mean ? 3 : 2;
}

/// The kind of this name, if there is one.
constexpr std::optional<MixingKind> mixing_named(std::string_view name) {
  const auto* const found = std::ranges::find(kMixingNames, name, &MixingName::name);
  return found == kMixingNames.end() ? std::nullopt : std::optional(found->kind);
}

}  // namespace sotto::sites
