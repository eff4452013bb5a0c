// An emulated network that runs: hosts in namespaces, and a thread that carries packets between
// them as the fabric says. When it ends nothing is left.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fabric.h"
#include "network_namespace.h"

namespace sotto::netlab {

/// What an emulated network is to have.
struct EmulatedNetworkOptions {
  int hosts = 2;                    ///< how many hosts
  bool free_net = true;             ///< whether each host has a second address, past all links
  std::uint64_t seed = 0;           ///< the seed of jitter and loss
  std::string congestion = "reno";  ///< TCP's congestion control, as the kernel names it
};

/// While it lives, its thread goes ahead of all else on the machine but the switch, in turns with
/// its like; so do the programs that the thread starts: each stands for a machine of its own, which
/// does not wait for what else runs here.
class HostPriority {
 public:
  HostPriority();
  ~HostPriority();
  HostPriority(const HostPriority&) = delete;
  HostPriority& operator=(const HostPriority&) = delete;

 private:
  int policy_;
  int priority_ = 0;
};

/// Hosts of an emulated network, and their programs, which the thread that makes the
/// EmulatedNetwork starts.
class EmulatedNetwork {
 public:
  /// All links are unlimited at first. Throws Error saying what this machine lacks.
  explicit EmulatedNetwork(const EmulatedNetworkOptions& options);
  ~EmulatedNetwork();
  EmulatedNetwork(const EmulatedNetwork&) = delete;
  EmulatedNetwork& operator=(const EmulatedNetwork&) = delete;

  int hosts() const { return static_cast<int>(namespaces_.size()); }
  /// The host, in which programs are started.
  const NetworkNamespace& at(Host host) const {
    return namespaces_[static_cast<std::size_t>(host)];
  }
  /// Shapes one direction between two hosts, for packets that leave from now on.
  void set_link(Host from, Host to, const LinkShape& shape);
  /// Limits a host to bytes per second out and in, all peers together.
  void set_host(Host host, double up, double down);
  /// All that goes from one of some hosts to one of others shares a trunk of bytes per second, not
  /// 0; one way. Before the first program.
  void add_trunk(std::span<const Host> from, std::span<const Host> to, double bytes_per_s);
  /// What went from one host to another so far.
  Carried carried(Host from, Host to) const;
  /// Whether nothing is under way.
  bool idle() const;
  /// Wire bytes over all pairs.
  std::uint64_t carried() const;
  /// Packets that found no room, over all pairs: 0 unless something here is wrong.
  std::uint64_t dropped() const;

 private:
  void serve();
  void take_from(Host host);
  void pass(Host to, std::span<const std::byte> bytes);

  HostPriority priority_;
  std::vector<NetworkNamespace> namespaces_;
  std::vector<std::byte> room_;
  std::uint64_t refused_ = 0;  ///< packets that a host's device refused
  SimTime interval_ = 0;       ///< the time between two looks while packets are under way; 0: none
  mutable std::mutex mutex_;   ///< guards the fabric, refused_ and interval_
  Fabric fabric_;
  FileDescriptor wake_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sotto::netlab
