// Frames of a device over a transport of the host's: staged.h, over any Device.
//
// Thread safety and ownership: as staged.h says. The thread that calls may be one that has chosen
// no device, or another: post(), poll() and the destructor leave it with this one.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include <sotto/comm/transport.h>

#include "device.h"

namespace sotto::internal {

/// Pinned memory and events, kept for the next who asks. Needs no lock: one thread at a time.
class PinnedPool {
 public:
  explicit PinnedPool(Device& device) : device_(device) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// So many bytes at least.
  Result<DeviceMemory> take(std::size_t bytes);
  void give_back(DeviceMemory memory) { memory_.push_back(std::move(memory)); }
  Result<DeviceEvent> take_event();
  void give_back(DeviceEvent event) { events_.push_back(event); }

 private:
  Device& device_;
  std::vector<DeviceMemory> memory_;
  std::vector<DeviceEvent> events_;
};

class StagedTransport final : public Transport {
 public:
  StagedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Device> device,
                  DeviceStream stream);
  ~StagedTransport() override;
  StagedTransport(const StagedTransport&) = delete;
  StagedTransport& operator=(const StagedTransport&) = delete;

  std::string_view name() const override { return inner_->name(); }
  bool takes_split_exchanges() const override { return false; }
  Status post(const Exchange& exchange) override;
  Result<TransportEvent> poll(Deadline deadline) override;
  void interrupt() override { inner_->interrupt(); }

 private:
  /// An exchange under way, as the caller sees it and as the inner transport does.
  struct Staged {
    Exchange outer;
    Exchange inner;
    std::vector<DeviceMemory> pinned;
    DeviceEvent copied = nullptr;  ///< its frames are in pinned memory; null: they were there
  };
  /// Memory that copies onto the device may still read.
  struct Retired {
    std::vector<DeviceMemory> pinned;
    DeviceEvent copied = nullptr;
  };
  using Exchanges = std::list<Staged>;

  /// Fills `inner`, and puts the copies of what is sent on the stream.
  Status stage(Staged& staged);
  /// Pinned memory in place of `memory`; nothing where that is the host's already.
  Result<std::span<std::byte>> stand_in(Staged& staged, std::span<const std::byte> memory);
  /// Posts what is copied, in the order in which it was handed over.
  Status post_copied();
  Status unstage(const TransportEvent& event);
  /// Keeps its memory until the copies on the stream are done; for good where nobody can tell when.
  void retire(Staged staged);
  void reclaim();
  Exchanges::iterator find(const ExchangeTag& tag);

  const std::shared_ptr<Device> device_;
  DeviceStream stream_;
  PinnedPool pool_;
  Exchanges waiting_;  ///< for their copies
  Exchanges posted_;
  std::deque<Retired> retired_;
  std::unique_ptr<Transport> inner_;
};

}  // namespace sotto::internal
