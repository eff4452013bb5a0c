// What nodes keep in a store, each value sealed under a key that follows from the run's
// (sealed_message.h) and of a bounded length: opens values, and takes down those that are refused,
// as they do not open or break their grammar.
//
// Thread safety: one thread at a time. Every call waits for a server until its deadline, at most;
// for one of files as long as the system does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/trust/run_key.h>

namespace sotto {

class StoredEntries {
 public:
  /// A value, as it is and opened.
  struct Entry {
    std::uint64_t mark = 0;                          ///< digest of its bytes; 0: there is none
    std::optional<std::vector<std::byte>> opened{};  ///< none: it is refused
  };
  /// The least mark of a value, as 0 is that of none.
  static constexpr std::uint64_t kMarkOfAny = 2;

  /// Entries of this store.
  explicit StoredEntries(std::shared_ptr<SharedStore> store) : store_(std::move(store)) {}

  /// The value of a key, of `most` bytes at most before it was sealed. A fault: the store does not
  /// answer.
  Result<Entry> read(const std::string& key, const PrivateKey& seal, std::size_t most,
                     Deadline deadline);
  /// The store itself, for what is written.
  SharedStore& store() { return *store_; }

  /// An entry with this mark is not what it should be.
  void refuse(const std::string& key, std::uint64_t mark, const std::string& why);
  /// What was refused since the last call, each entry once while it stays as it is.
  std::vector<std::string> take_refused() { return std::exchange(told_, {}); }

 private:
  const std::shared_ptr<SharedStore> store_;
  std::map<std::string, std::uint64_t> refused_;  ///< marks of entries that were refused, by key
  std::vector<std::string> told_;                 ///< what take_refused() returns
};

}  // namespace sotto
