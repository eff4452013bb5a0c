#include "memory_store.h"

#include <sotto/comm/stores.h>
#include "../inproc/inproc_hub.h"

#include "../internal/store_key.h"

namespace sotto {
namespace internal {

Status MemoryStore::set(std::string_view key, std::span<const std::byte> value) {
  if (auto fits = check_store_entry(key, value); !fits) {
    return fits;
  }
  {
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(std::string(key), std::vector(value.begin(), value.end()));
  }
  published_.notify_all();
  return {};
}

Result<std::vector<std::byte>> MemoryStore::get(std::string_view key, Deadline deadline) {
  if (auto fits = check_store_key(key); !fits) {
    return fits;
  }
  std::unique_lock lock(mutex_);
  auto found = values_.end();
  const bool there = wait_until(published_, lock, deadline, [&] {
    found = values_.find(key);
    return found != values_.end();
  });
  if (!there) {
    return store_overdue(key, deadline);
  }
  return found->second;
}

Status MemoryStore::remove(std::string_view key) {
  if (auto fits = check_store_key(key); !fits) {
    return fits;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = values_.find(key); found != values_.end()) {
    values_.erase(found);
  }
  return {};
}

std::shared_ptr<InprocHub> MemoryStore::hub(std::uint64_t run_id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(hubs_, [](const auto& entry) { return entry.second.expired(); });
  auto hub = hubs_[run_id].lock();
  if (!hub) {
    hub = std::make_shared<InprocHub>();
    hubs_[run_id] = hub;
  }
  return hub;
}

}  // namespace internal

std::shared_ptr<Store> make_memory_store() { return std::make_shared<internal::MemoryStore>(); }

}  // namespace sotto
