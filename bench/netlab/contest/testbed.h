// The testbed on which contenders run: hosts of an emulated network that are all alike, or this
// machine's loopback without shaping. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/console/output.h>

#include "bench/netlab/network/emulated_network.h"
#include "bench/netlab/network/link_check.h"

namespace sotto::netlab {

/// What a testbed is to be like.
struct TestbedShape {
  int hosts = 8;                         ///< how many nodes can run
  std::string bandwidth = "100 Mbit/s";  ///< the bandwidth of each host, up and down
  std::string latency = "10 ms";         ///< the latency of each link, one way
  double loss = 0;                       ///< the share of packets that a link loses, 0 to below 1
  bool loopback = false;  ///< this machine's loopback, where those above do not count
};

/// Hosts on which jobs run one after the other.
class Testbed {
 public:
  /// Throws Error for a shape that cannot be, and where no network can be emulated.
  explicit Testbed(const TestbedShape& shape);

  int hosts() const { return shape_.hosts; }
  /// Whether the hosts are emulated; else all are this machine.
  bool emulated() const { return network_ != nullptr; }
  /// Null on loopback, as Child takes it.
  const NetworkNamespace* at(Host host) const;
  /// The IP address at which programs on the host listen.
  std::string address(Host host) const;
  /// The name of the device that has it.
  std::string device() const;
  /// What went over all links so far, on the wire; 0 on loopback.
  std::uint64_t carried() const;
  /// Returns when no packet is under way any more, or after a while.
  void settle() const;
  /// What plain TCP finds on a link; nothing on loopback.
  std::vector<LinkCheck> check() const;
  /// "8 hosts, 100 Mbit/s, 10 ms one way"
  std::string text() const;
  /// The shape, for --json.
  Json json() const;

 private:
  TestbedShape shape_;
  std::optional<study::Scenario> scenario_;
  std::unique_ptr<EmulatedNetwork> network_;
};

}  // namespace sotto::netlab
