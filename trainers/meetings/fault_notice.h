// Why a node of a run gives up, published in the store, so that all nodes end with the words of the
// first.
//
// Thread safety: one thread a node.
#pragma once

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto {

class FaultNotice {
 public:
  /// `store` must outlive this object.
  FaultNotice(Store& store, Rank rank) : store_(store), rank_(rank) {}

  /// Tells all nodes that this one gives up, and why; their waits end with the same fault.
  void give_up(const Status& given);
  /// Why a node gave up; OK when none has.
  Status given_up();
  /// Why a node gave up; tells all nodes `cause` when none has and the store can be reached.
  Status given_up_or(const Status& cause);

 private:
  Store& store_;
  Rank rank_;
};

}  // namespace sotto
