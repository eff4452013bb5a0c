// What a node had sent, and where its time had gone, when the state was saved from which it goes
// on. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/driver.h>

namespace sotto::internal {

class WorkBefore {
 public:
  /// Starts with zero traffic to each of `peers` and zero times.
  WorkBefore(Rank rank, const std::vector<Rank>& peers) {
    for (const Rank peer : peers) {
      traffic_.push_back({rank, peer, 0, 0});
    }
  }

  /// Traffic of both, with what was sent since then.
  std::vector<LinkTraffic> and_since(const std::vector<LinkTraffic>& since) const {
    std::vector<LinkTraffic> total = traffic_;
    for (std::size_t i = 0; i < since.size(); ++i) {
      total[i].bytes += since[i].bytes;
      total[i].frames += since[i].frames;
    }
    return total;
  }
  /// Times of both, with those since then.
  DriverTimes and_since(const DriverTimes& since) const {
    return {times_.algorithm_s + since.algorithm_s, times_.wait_s + since.wait_s};
  }

  /// Writes the sums for a state.
  static void save(const std::vector<LinkTraffic>& sent, const DriverTimes& times,
                   ByteBuffer& out) {
    out.write(static_cast<std::uint32_t>(sent.size()));
    for (const LinkTraffic& edge : sent) {
      out.write(edge.to);
      out.write(edge.bytes);
      out.write(edge.frames);
    }
    out.write(times.algorithm_s);
    out.write(times.wait_s);
  }
  /// Takes back what save wrote; the reader of what follows finds out whether the state ended too
  /// early.
  Status load(ByteReader& in) {
    Status others(Fault::malformed, "the saved traffic is that of other neighbours");
    if (in.read<std::uint32_t>() != traffic_.size()) {
      return others;
    }
    for (LinkTraffic& edge : traffic_) {
      const auto peer = in.read<Rank>();
      edge.bytes = in.read<std::uint64_t>();
      edge.frames = in.read<std::uint64_t>();
      if (edge.to != peer) {
        return others;
      }
    }
    times_.algorithm_s = in.read<double>();
    times_.wait_s = in.read<double>();
    return {};
  }

 private:
  std::vector<LinkTraffic> traffic_;  ///< traffic by peer, in the order of a driver's
  DriverTimes times_;
};

}  // namespace sotto::internal
