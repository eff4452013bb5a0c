// A host of the emulated network: a network namespace of its own with one TUN device in it. Both
// have no name and hang on file descriptors alone, so that the kernel removes them when this
// process ends, however it ends. Linux only; needs CAP_SYS_ADMIN and /dev/net/tun.
//
// Thread safety: after construction, const use from any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sotto/base/file_descriptor.h>

#include "packet.h"

namespace sotto::netlab {

/// One host, for as long as the object lives.
class NetworkNamespace {
 public:
  /// Without `free_net` it has no address past the links. `congestion` is TCP's congestion control,
  /// as the kernel names it; every kernel allows "reno" in every namespace. Throws Error saying
  /// what this machine lacks.
  explicit NetworkNamespace(Host host, bool free_net = true,
                            const std::string& congestion = "reno");

  /// The namespace's descriptor, for setns.
  int fd() const { return namespace_.get(); }
  /// Non-blocking. A read gives one packet, or a piece of a TCP stream as large as the kernel
  /// likes, behind its virtio_net_hdr; a write takes one.
  int device() const { return device_.get(); }
  /// Runs `work` in a thread inside the namespace, and waits for it. Passes exceptions on.
  void inside(const std::function<void()>& work) const;

 private:
  FileDescriptor namespace_;
  FileDescriptor device_;
};

/// "10.77.0.1": the host's address on the emulated links.
std::string shaped_address(Host host);
/// "10.78.0.1": past them.
std::string free_address(Host host);

/// Why no network can be emulated here; nothing when it can.
std::optional<std::string> unavailable();

}  // namespace sotto::netlab
