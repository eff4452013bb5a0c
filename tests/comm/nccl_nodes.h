// One rank of the transport nccl over a fake, with its fake at hand.
#pragma once

#include <memory>
#include <utility>

#include "nodes.h"

namespace sotto::test {

struct NcclNode {
  NcclNode(const TransportOptions& options, std::shared_ptr<World> world)
      : device(std::make_shared<FakeDevice>()),
        library(std::make_shared<FakeNccl>(std::move(world), device)) {
    auto made = internal::make_nccl_transport(options, device, library);
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    transport = std::move(*made);
  }

  std::shared_ptr<FakeDevice> device;
  std::shared_ptr<FakeNccl> library;
  std::unique_ptr<Transport> transport;
};

/// Waits until the node has begun so many groups; false where it does not.
inline bool begins_groups(const NcclNode& node, int groups) {
  for (const Deadline limit = generous(); node.library->groups() < groups;) {
    if (limit.expired()) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

/// Makes an exchange one without this peer.
inline void leave_out(Rank peer, Exchange& exchange) {
  std::erase_if(exchange.sends, [=](const Send& send) { return send.to == peer; });
  std::erase_if(exchange.receives, [=](const Receive& receive) { return receive.from == peer; });
}

/// A vector of the device, as a program would have it.
class OnDevice {
 public:
  OnDevice(FakeDevice& device, std::size_t bytes)
      : device_(device),
        memory_(
            std::move(*internal::DeviceMemory::make(device, internal::DeviceRoom::device, bytes))) {
  }
  OnDevice(FakeDevice& device, std::span<const std::byte> bytes) : OnDevice(device, bytes.size()) {
    std::memcpy(device_.reach(memory_.bytes().data()), bytes.data(), bytes.size());
  }

  std::span<std::byte> bytes() const { return memory_.bytes(); }
  std::vector<std::byte> copy(std::size_t bytes) const {
    const auto* at = device_.reach(memory_.bytes().data());
    return {at, at + bytes};
  }

 private:
  FakeDevice& device_;
  internal::DeviceMemory memory_;
};

/// The next event, or the test fails.
inline TransportEvent next_event(Transport& transport) {
  auto event = transport.poll(generous());
  REQUIRE_MESSAGE(event.ok(), event.status().message());
  return *event;
}

/// The losses that are told until nothing more is, in their order.
inline std::vector<TransportEvent> losses(Transport& transport) {
  std::vector<TransportEvent> told;
  TransportEvent first = next_event(transport);
  for (Result<TransportEvent> event = first; event.ok();
       event = transport.poll(Deadline::after(std::chrono::seconds(0)))) {
    REQUIRE(event->kind != TransportEvent::Kind::exchange_done);
    if (event->kind == TransportEvent::Kind::peer_lost) {
      told.push_back(*event);
    }
  }
  return told;
}

}  // namespace sotto::test
