#include "shaped_transport.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "timed_sends.h"

namespace sotto::test {
namespace {

using Clock = Deadline::Clock;

/// A server that works off one frame after another.
class Line {
 public:
  explicit Line(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  /// When a frame that is there at `now` has passed.
  Clock::time_point pass(std::size_t bytes, Clock::time_point now) {
    if (bytes_per_second_ == 0) {
      return now;
    }
    const std::chrono::duration<double> took(static_cast<double>(bytes) / bytes_per_second_);
    free_at_ = std::max(free_at_, now) + std::chrono::duration_cast<Clock::duration>(took);
    return free_at_;
  }

 private:
  double bytes_per_second_;
  Clock::time_point free_at_{};
};

struct Edge {
  Line line;
  Clock::duration latency;
};

class ShapedTransport final : public Transport {
 public:
  ShapedTransport(std::unique_ptr<Transport> inner, const NetworkShape& shape)
      : name_(fmt::format("shaped {}", inner->name())),
        dispatcher_(std::move(inner)),
        shape_(shape),
        uplink_(shape.uplink_bytes_per_second) {}

  std::string_view name() const override { return name_; }

  Status post(const Exchange& exchange) override {
    const auto now = Clock::now();
    std::vector<TimedSend> sends;
    for (const Send& send : exchange.sends) {
      Edge& edge = edge_to(send.to);
      const auto left_us = uplink_.pass(send.frame.size(), now);
      const auto through = std::max(left_us, edge.line.pass(send.frame.size(), now));
      sends.push_back({send, through + edge.latency});
    }
    return dispatcher_.post(exchange.tag, exchange.receives, std::move(sends));
  }

  Result<TransportEvent> poll(Deadline deadline) override { return dispatcher_.poll(deadline); }
  void interrupt() override { dispatcher_.interrupt(); }

 private:
  Edge& edge_to(Rank peer) {
    const auto own = shape_.edge_to.find(peer);
    const LinkShape& shape = own == shape_.edge_to.end() ? shape_.edge : own->second;
    return edges_.try_emplace(peer, Edge{Line(shape.bytes_per_second), shape.latency})
        .first->second;
  }

  const std::string name_;
  TimedSends dispatcher_;
  const NetworkShape shape_;
  Line uplink_;
  std::map<Rank, Edge> edges_;
};

void check_bandwidth(std::string_view field, double bytes_per_second) {
  if (!std::isfinite(bytes_per_second) || bytes_per_second < 0) {
    refuse(field, fmt::to_string(bytes_per_second),
           "a bandwidth is a finite number of bytes a second; 0 does not limit");
  }
}

void check_link(std::string_view field, const LinkShape& link) {
  check_bandwidth(field, link.bytes_per_second);
  if (link.latency < Clock::duration::zero()) {
    refuse(field, "a negative latency", "frames do not arrive before they are sent");
  }
}

}  // namespace

std::unique_ptr<Transport> make_shaped_transport(std::unique_ptr<Transport> inner,
                                                 const NetworkShape& shape) {
  check_bandwidth("uplink", shape.uplink_bytes_per_second);
  check_link("edge", shape.edge);
  for (const auto& [peer, link] : shape.edge_to) {
    check_link(fmt::format("edge to {}", peer), link);
  }
  return std::make_unique<ShapedTransport>(std::move(inner), shape);
}

}  // namespace sotto::test
