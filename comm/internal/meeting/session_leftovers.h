// The keys that a node has in the store of a session, listed in the store itself: even a node that
// is killed leaves a true list, and its next life removes what stands there.
//
// Thread-safe. Ownership: the store is the caller's and must outlive the object.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <sotto/base/ids.h>
#include <sotto/comm/store.h>

namespace sotto::internal {

class SessionLeftovers {
 public:
  /// The list of the node with this rank.
  SessionLeftovers(Store& store, Rank rank);

  /// The node is about to put this key into the store.
  void add(std::string key);
  /// The node has removed this key.
  void remove(std::string_view key);
  /// From now on the store has the list.
  void publish();
  /// Removes what the node's last life has left; or, unless `clear`, keeps it in this life's list,
  /// for the next to remove. What cannot be removed stays: it is in nobody's way.
  void settle(bool clear);

 private:
  void write() const;

  Store& store_;
  const std::string name_;  ///< key of the list
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> keys_;
  bool published_ = false;
};

}  // namespace sotto::internal
