// BBR, version 1 (Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5),
// 2016), as Linux has it: it measures the bandwidth that the path gives and the shortest round
// trip, sends at that rate, and lets twice their product be under way. Losses bound it only for the
// round trip in which they are heard of. It looks for no policer, and takes acknowledgements that
// come together for no reserve.
//
// One thread at a time. A plain value.
#pragma once

#include <array>

#include <sotto/sim/network/tcp/congestion_control.h>

namespace sotto {

class Bbr : public CongestionControl {
 public:
  /// The first round trip took so long, and the window begins with so many packets.
  Bbr(SimTime round_trip, int window);

  int after_loss(const CongestionState& state) override;
  void hear(CongestionState& state, const Told& told) override;
  void time_out() override { last_repair_ = Repair::timeout; }
  void rest(SimTime span) override;
  bool rules_repairs() const override { return true; }
  double packets_per_s() const override { return packets_per_s_; }

 private:
  enum class Phase : std::uint8_t { startup, drain, probe_bandwidth, probe_round_trip };

  double bandwidth() const;
  /// Packets under way that fill the path so many times.
  int packets_for(double gain) const;
  void measure(const Told& told);
  void look_whether_full(const Told& told);
  void change_phase(const Told& told);
  void cycle(const Told& told);
  void measure_round_trip(CongestionState& state, const Told& told);
  void set_window(CongestionState& state, const Told& told);
  /// Bounds the window while losses are repaired, and gives it back afterwards. True: that is all.
  bool repair(CongestionState& state, const Told& told);

  Phase phase_ = Phase::startup;
  std::array<double, 10> best_ = {};  ///< the highest rate of each of the last ten round trips
  std::uint64_t round_ = 0;
  std::uint64_t round_ends_at_ = 0;  ///< packets delivered by then
  bool round_began_ = false;
  double full_bandwidth_ = 0;
  int rounds_without_growth_ = 0;
  bool full_ = false;
  std::size_t place_ = 0;  ///< in the cycle of gains
  SimTime place_since_ = 0;
  SimTime shortest_;          ///< round trip, of the last ten seconds
  SimTime shortest_at_ = -1;  ///< time of that measurement; -1: nothing was heard yet
  SimTime probes_until_ = -1;
  int first_window_;
  int before_ = 0;  ///< window before a repair
  Repair last_repair_ = Repair::none;
  bool conserves_ = false;
  double packets_per_s_;
};

}  // namespace sotto
