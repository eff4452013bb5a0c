// The transport over NCCL itself, on a device of this machine.
#include <cstdlib>
#include <mutex>
#include <utility>

#include "../../internal/address/address.h"
#include "../../internal/backends.h"
#include "../nccl_transport.h"

namespace sotto::internal {
namespace {

/// NCCL would listen wherever it likes; it is to stay where sotto was told to.
void keep_to_interface_of(const TransportOptions& options) {
  static std::once_flag once;
  std::call_once(once, [&] {
    const auto name = interface_of(resolve_bind_address(
        "bind", options.bind, {.beyond_loopback = options.insecure, .everywhere = false}));
    if (!name.empty()) {
      constexpr int kUnlessSet = 0;
      ::setenv("NCCL_SOCKET_IFNAME", ("=" + name).c_str(), kUnlessSet);
    }
  });
}

}  // namespace

Result<std::unique_ptr<Transport>> make_nccl_transport(const TransportOptions& options) {
  keep_to_interface_of(options);
  auto device = make_cuda_device(options.rank);
  if (!device) {
    return device.status().with_context("nccl needs a GPU a node");
  }
  return make_nccl_transport(options, std::move(*device), make_nccl_library());
}

}  // namespace sotto::internal
