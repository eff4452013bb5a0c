// The store within one process, which also leads the nodes of an inproc job to one another.
//
// Thread safety: all members. Ownership: values are copies; hubs live as long as a node that
// joined.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sotto/comm/store.h>

namespace sotto::internal {

class InprocHub;

class MemoryStore final : public Store {
 public:
  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;

  /// The meeting place of the nodes of `run_id`.
  std::shared_ptr<InprocHub> hub(std::uint64_t run_id);

 private:
  std::mutex mutex_;
  std::condition_variable published_;
  std::map<std::string, std::vector<std::byte>, std::less<>> values_;
  std::map<std::uint64_t, std::weak_ptr<InprocHub>> hubs_;
};

}  // namespace sotto::internal
