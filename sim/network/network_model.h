// What a simulated network has beyond plain max–min fairness, as numbers. A plain value;
// thread-safe.
#pragma once

#include <sotto/sim/network/platform.h>
#include <sotto/sim/network/tcp/congestion_control.h>

namespace sotto {

/// The most that acknowledgements weigh, as a part of what they acknowledge: TCP sends one of some
/// 60 bytes for two segments of 1500 or, at worst, for each small one.
inline constexpr double kMostAcknowledgements = 0.1;

/// Effects beyond plain max–min fairness. The defaults add none.
struct NetworkModel {
  double latency_factor = 1;
  double bandwidth_factor = 1;
  /// A message takes its latency before its flow, as in SimGrid; otherwise after it, so that a
  /// sender's way out is busy exactly while it sends.
  bool latency_first = false;
  /// Flows share in inverse proportion to latency + Σ weight_bytes / bandwidth over their links, as
  /// TCP does by round-trip time; otherwise equally.
  bool weigh_by_latency = false;
  double weight_bytes = 0;  ///< bytes
  /// Acknowledgements: this fraction of a flow's rate is taken of each link of the way back.
  /// The flow shares these links as it shares those of its way: as in SimGrid.
  double crosstraffic = 0;
  /// Acknowledgements, as TCP sends them: this fraction of a flow's rate is taken of what each link
  /// of the way back has for others. Where a link cannot carry that much, it bounds the flow; else
  /// its being full does not hold the flow up.
  double acknowledgements = 0;
  /// No more than this is under way at a time: a rate of at most window / round trip.
  double window_bytes = kUnlimited;
  /// Slow start from this window on (tcp/congestion_window.h); infinite: at full rate at once.
  /// Linux: 10 segments.
  double initial_window_bytes = kUnlimited;
  /// The window shrinks while a connection is idle: Linux's default, though not with BBR.
  bool window_decays = true;
  /// Payload of a full packet. Where packets are lost, and there is slow start, they go one by one,
  /// and the sender is Linux's (tcp/tcp_sender.h); without slow start loss bounds the mean rate
  /// only (tcp/mean_rate.h).
  double segment_bytes = 1448;
  /// Where packets are lost. Elsewhere it says only whether windows decay, which they do not with
  /// BBR.
  Congestion congestion = Congestion::reno;
  /// Packets of this size, headers included, instead of a fluid; 0: a fluid. Where a
  /// message is shared out its packets leave evenly; on every other link of its way they wait for
  /// half a packet of each other message that flows there. And in slow start the acknowledgements
  /// of a window wait behind what its receiver sends back, as in a sender's queue.
  double packet_bytes = 0;

  /// Whether connections begin with a TCP window.
  bool slow_start() const { return initial_window_bytes < kUnlimited; }

  /// Raw CM02 of SimGrid: latency and bandwidth as declared, shares by round-trip time.
  static NetworkModel cm02() { return {.latency_first = true, .weigh_by_latency = true}; }
  /// SimGrid's default, LV08: CM02 with factors fitted to packet-level simulation.
  static NetworkModel lv08() {
    return {.latency_factor = 13.01,
            .bandwidth_factor = 0.97,
            .latency_first = true,
            .weigh_by_latency = true,
            .weight_bytes = 20537,
            .crosstraffic = 0.05,
            .window_bytes = 4194304};
  }
  /// TCP as Linux has it by default, as far as a fluid model can.
  static NetworkModel linux_tcp() {
    return {.initial_window_bytes = 10 * 1448, .packet_bytes = 1500};
  }
};

/// Throws Error for a model that is out of range.
void validate(const NetworkModel& model);

}  // namespace sotto
