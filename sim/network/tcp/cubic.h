// CUBIC (Ha, Rhee and Xu 2008, RFC 9438) with HyStart (Ha and Rhee 2011), as Linux has them: after
// a loss the window goes back to 0.7 of what it was, comes near that again soon, stays, and then
// looks for more; never slower than Reno. Slow start ends when round trips grow longer, or when
// acknowledgements come in one train for half of a round trip.
//
// One thread at a time. A plain value.
#pragma once

#include <sotto/sim/network/tcp/congestion_control.h>

namespace sotto {

class Cubic : public CongestionControl {
 public:
  int after_loss(const CongestionState& state) override;
  void hear(CongestionState& state, const Told& told) override;
  void time_out() override;
  void rest(SimTime span) override;

 private:
  /// Ends slow start where the path seems to be full.
  void look_for_the_end(CongestionState& state, const Told& told);
  /// Acknowledged packets after which the window grows by one.
  int pace(const CongestionState& state, const Told& told);

  int before_loss_ = 0;  ///< window before the last loss; 0: none yet
  int counted_ = 0;
  SimTime epoch_ = -1;    ///< time when the present growth began; −1: it has yet to
  double plateau_s_ = 0;  ///< seconds from then on until the window is what it was
  double plateau_ = 0;    ///< that window
  double reno_window_ = 0;
  double reno_counted_ = 0;
  // HyStart.
  SimTime round_began_ = -1;
  std::uint64_t round_ends_at_ = 0;  ///< packets delivered by then
  SimTime last_heard_ = -1;
  SimTime shortest_ = -1;  ///< shortest round trip of this round
  int samples_ = 0;
};

}  // namespace sotto
