#include <sotto/sites/nodes/stores/stored_entries.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/xxh3.h>
#include <sotto/comm/trust/sealed_message.h>

namespace sotto {
namespace {

std::uint64_t mark_of(std::span<const std::byte> bytes) {
  return std::max(xxh3(bytes), StoredEntries::kMarkOfAny);
}

}  // namespace

Result<StoredEntries::Entry> StoredEntries::read(const std::string& key, const PrivateKey& seal,
                                                 std::size_t most, Deadline deadline) {
  const auto value = store_->look(key, most + kSealBytes, deadline);
  if (!value.ok() && value.status().fault() != Fault::malformed) {
    return value.status();
  }
  if (value.ok() && !*value) {
    refused_.erase(key);
    return Entry{};
  }
  if (!value.ok()) {
    const std::string& why = value.status().message();
    const std::uint64_t mark = mark_of(std::as_bytes(std::span(why)));
    refuse(key, mark, why);
    return Entry{.mark = mark};
  }
  Entry entry{.mark = mark_of(**value), .opened = open_message(**value, seal)};
  if (!entry.opened) {
    refuse(key, entry.mark,
           "this run's key does not open it: give all nodes one key, and each run a folder or "
           "prefix of its own");
  }
  return entry;
}

void StoredEntries::refuse(const std::string& key, std::uint64_t mark, const std::string& why) {
  auto& known = refused_[key];
  if (std::exchange(known, mark) != mark) {
    told_.push_back(fmt::format("'{}' in the store is refused: {}", key, why));
  }
}

}  // namespace sotto
