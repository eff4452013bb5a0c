// What the server of a store keeps: values, and values of which pieces are still arriving.
//
// Clients that are known by their ranks have their own keys (store_rules.h) and limited room each;
// node 0, which serves, is not bound by either. Without ranks everybody may do everything.
//
// Thread safety: none. Ownership: its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

#include "../socket/piece.h"

namespace sotto::internal {

class StoredValues {
 public:
  /// The node that asks; nothing where clients are not known.
  using Client = std::optional<Rank>;

  struct Value {
    std::vector<std::byte> bytes;
    std::uint64_t version = 0;  ///< unique among all values of a server
    Client owner;
  };

  struct KeyedPiece {
    std::string_view key;
    Piece piece;  ///< the piece's place in its value
  };

  /// Most bytes of a client's values, those that are arriving among them: the longest value, and
  /// much that is short.
  static constexpr std::size_t kRoom = kMostStoreValueBytes + (std::size_t{64} << 20);
  /// Cost of a key beside its value.
  static constexpr std::size_t kKeyBytes = 512;

  explicit StoredValues(std::size_t room = kRoom) : room_(room) {}

  /// Takes the next piece of a value that arrives over `connection`; offset 0 begins one, and drops
  /// one that had begun. True when the value is whole and published. Fault::unexpected: not this
  /// client's key, or no room left; Fault::malformed: not the next piece.
  Result<bool> set(const Client& client, const std::string& connection, const KeyedPiece& part);
  /// The value under a key, null when there is none; Fault::unexpected when it is not for this
  /// client. Valid until the next set or remove.
  Result<const Value*> get(const Client& client, std::string_view key) const;
  /// Forgets a key, there or not. Fault::unexpected as for get.
  Status remove(const Client& client, std::string_view key);
  /// Nothing more comes over `connection`.
  void drop(const std::string& connection);

 private:
  struct Arriving {
    std::string key;
    Progress progress;
    std::vector<std::byte> bytes;
    Client owner;
  };

  static std::size_t cost(std::uint64_t bytes) { return bytes + kKeyBytes; }
  const Value* find(std::string_view key) const;
  Client owner_of(std::string_view key) const;
  bool has_room(Rank client, std::string_view key, std::uint64_t bytes) const;
  void publish(Arriving&& whole);
  void erase(std::string_view key);
  void count(const Client& owner, std::size_t more, std::size_t less);

  const std::size_t room_;
  std::uint64_t versions_ = 0;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, Arriving> arriving_;  ///< values that are arriving, by connection
  std::map<Rank, std::size_t> held_;          ///< cost of all that each client has here
};

}  // namespace sotto::internal
