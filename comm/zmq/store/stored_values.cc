#include "stored_values.h"

#include <utility>

#include <fmt/format.h>

#include "store_rules.h"

namespace sotto::internal {
namespace {

Status not_theirs(Rank client, std::string_view key, std::string_view what) {
  return {Fault::unexpected,
          fmt::format("'{}' is not node {}'s to {}", std::string(key), client, what)};
}

}  // namespace

Result<bool> StoredValues::set(const Client& client, const std::string& connection,
                               const KeyedPiece& part) {
  const auto& [key, piece] = part;
  if (client && !may_set(*client, key, owner_of(key))) {
    drop(connection);
    return not_theirs(*client, key, "set");
  }
  if (piece.offset == 0) {
    drop(connection);
    if (client && *client != 0 && !has_room(*client, key, piece.total)) {
      return Status(Fault::unexpected,
                    fmt::format("node {} has more in the store than the {} bytes that it may have",
                                *client, room_));
    }
    Arriving begun{std::string(key), {}, {}, client};
    begun.progress.begin(piece.total);
    begun.bytes.reserve(piece.total);
    count(client, cost(piece.total), 0);
    arriving_.emplace(connection, std::move(begun));
  }
  const auto found = arriving_.find(connection);
  if (found == arriving_.end() || found->second.key != key ||
      !found->second.progress.awaits(piece)) {
    drop(connection);
    return Status(Fault::malformed,
                  fmt::format("byte {} of '{}' is not the next", piece.offset, std::string(key)));
  }
  auto& bytes = found->second.bytes;
  bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
  if (!found->second.progress.take(piece)) {
    return false;
  }
  publish(std::move(arriving_.extract(found).mapped()));
  return true;
}

Result<const StoredValues::Value*> StoredValues::get(const Client& client,
                                                     std::string_view key) const {
  if (client && !may_get(*client, key)) {
    return not_theirs(*client, key, "read");
  }
  return find(key);
}

Status StoredValues::remove(const Client& client, std::string_view key) {
  if (client && !may_remove(*client, key, owner_of(key))) {
    return not_theirs(*client, key, "remove");
  }
  erase(key);
  return {};
}

void StoredValues::drop(const std::string& connection) {
  if (const auto found = arriving_.find(connection); found != arriving_.end()) {
    count(found->second.owner, 0, cost(found->second.progress.total()));
    arriving_.erase(found);
  }
}

const StoredValues::Value* StoredValues::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

StoredValues::Client StoredValues::owner_of(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::nullopt : value->owner;
}

/// The value that it replaces makes room.
bool StoredValues::has_room(Rank client, std::string_view key, std::uint64_t bytes) const {
  const auto held = held_.find(client);
  const std::size_t before = held == held_.end() ? 0 : held->second;
  const Value* replaced = find(key);
  const std::size_t freed =
      replaced != nullptr && replaced->owner == client ? cost(replaced->bytes.size()) : 0;
  return before - freed + cost(bytes) <= room_;
}

void StoredValues::publish(Arriving&& whole) {
  erase(whole.key);
  values_.emplace(std::move(whole.key), Value{std::move(whole.bytes), ++versions_, whole.owner});
}

void StoredValues::erase(std::string_view key) {
  if (const auto found = values_.find(key); found != values_.end()) {
    count(found->second.owner, 0, cost(found->second.bytes.size()));
    values_.erase(found);
  }
}

void StoredValues::count(const Client& owner, std::size_t more, std::size_t less) {
  if (owner) {
    held_[*owner] += more - less;
  }
}

}  // namespace sotto::internal
