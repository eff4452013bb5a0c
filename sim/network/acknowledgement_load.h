// The bytes/s that acknowledgements of flows take from the links of the way back.
//
// One thread at a time. Plain values.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <sotto/sim/network/fair_share.h>
#include <sotto/sim/network/link_states.h>

namespace sotto {

class AcknowledgementLoad {
 public:
  /// Acknowledgements take `fraction` of a flow's rate (NetworkModel::acknowledgements).
  explicit AcknowledgementLoad(double fraction) : fraction_(fraction) {}

  bool none() const { return fraction_ == 0; }
  /// A flow without a rate follows those before it.
  void add_flow() {
    if (!none()) {
      rates_.push_back(0);
    }
  }
  /// The flow has another rate from now on: what its acknowledgements leave of the links of its way
  /// `back` is shared by messages.
  void charge(FlowId flow, double rate, std::span<const LinkId> back, LinkStates& links,
              FairShare& share) {
    if (none()) {
      return;
    }
    const double more = fraction_ * (rate - std::exchange(rates_[flow], rate));
    for (const LinkId link : back) {
      if (!links[link].unlimited) {
        // To follow each small change would share all flows anew again and again.
        constexpr double kSlight = 1e-3;
        links.add_acknowledgements(link, more);
        const double rest = links.left_for_messages(link);
        if (std::abs(rest - share.capacity(link)) > kSlight * share.capacity(link)) {
          share.set_capacity(link, rest);
        }
      }
    }
  }

 private:
  double fraction_;
  std::vector<double> rates_;  ///< rates for which links are charged, by flow
};

}  // namespace sotto
