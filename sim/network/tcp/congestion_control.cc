#include <sotto/sim/network/tcp/congestion_control.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sim/network/tcp/bbr.h>
#include <sotto/sim/network/tcp/cubic.h>

namespace sotto {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"reno", "cubic", "bbr"};

/// Reno (RFC 5681), as Linux has it: the window grows only while it is used up.
class Reno : public CongestionControl {
 public:
  int after_loss(const CongestionState& state) override {
    counted_ = 0;
    return std::max(state.window / 2, 2);
  }
  void hear(CongestionState& state, const Told& told) override {
    if (!told.limited || told.acknowledged == 0) {
      return;
    }
    counted_ += state.slow_start(told.delivered);
    if (counted_ >= state.window) {
      counted_ -= state.window;
      ++state.window;
    }
  }

 private:
  int counted_ = 0;  ///< packets acknowledged since the window grew last
};

}  // namespace

std::string congestion_name(Congestion congestion) {
  return std::string(kNames[static_cast<std::size_t>(congestion)]);
}

Congestion parse_congestion(const std::string& name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    throw Error(fmt::format("'{}' is none of reno, cubic and bbr", name));
  }
  return static_cast<Congestion>(found - kNames.begin());
}

std::unique_ptr<CongestionControl> make_congestion_control(Congestion congestion,
                                                           SimTime round_trip, int window) {
  switch (congestion) {
    case Congestion::cubic:
      return std::make_unique<Cubic>();
    case Congestion::bbr:
      return std::make_unique<Bbr>(round_trip, window);
    default:
      return std::make_unique<Reno>();
  }
}

}  // namespace sotto
