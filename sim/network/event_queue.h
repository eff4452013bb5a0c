// The queue of future events, in the order of (time, sequence of insertion).
//
// Virtual time never goes back, so a radix heap serves (Ahuja, Mehlhorn, Orlin and Tarjan 1990):
// bucket k holds the events with a time that first differs from the last one taken in bit k − 1.
// Events of one time always share a bucket and keep their order there, so that no sequence number
// is stored. An event moves at most once a bit, in practice a few times, along contiguous memory.
//
// One thread at a time. Owns copies of its events.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/sim/time.h>

namespace sotto {

/// An event in virtual time; the owner of `kind` defines the meaning of the fields.
struct Event {
  SimTime time = 0;
  std::uint32_t subject = 0;
  std::uint32_t version = 0;  ///< an event whose subject has moved on is ignored
  std::uint32_t kind = 0;
};

class EventQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// The time of the last event taken: the present.
  SimTime now() const { return static_cast<SimTime>(last_); }

  /// Requires event.time ≥ now(). An event due at kNever is dropped.
  void push(const Event& event) {
    check(event.time >= now(), "no event is put into the past");
    if (event.time == kNever) {
      return;
    }
    put(event);
    ++size_;
  }

  /// The time of the next event; kNever when there is none.
  SimTime next_time() {
    if (size_ == 0) {
      return kNever;
    }
    if (head_ < buckets_[0].size()) {
      return now();
    }
    return earliest_[first_filled()];
  }

  /// Takes the next event; its time becomes the present. Requires !empty().
  Event pop() {
    check(size_ > 0, "an event is due");
    if (head_ == buckets_[0].size()) {
      refill();
    }
    --size_;
    return buckets_[0][head_++];
  }

 private:
  using Bucket = std::vector<Event>;
  /// Memory for this many events stays with an empty bucket: a large one fills again rarely.
  static constexpr std::size_t kMostKept = std::size_t{1} << 16U;

  std::size_t bucket_of(SimTime time) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time) ^ last_));
  }
  std::size_t first_filled() const {
    std::size_t k = 1;
    while (buckets_[k].empty()) {
      ++k;
    }
    return k;
  }
  void put(const Event& event) {
    const std::size_t k = bucket_of(event.time);
    earliest_[k] = buckets_[k].empty() ? event.time : std::min(earliest_[k], event.time);
    // Written where it stays: a copy of what was just put together field by field would stall.
    Event& place = buckets_[k].emplace_back();
    place.time = event.time;
    place.subject = event.subject;
    place.version = event.version;
    place.kind = event.kind;
  }
  /// Moves the present to the next event, and spreads its bucket over the lower ones.
  void refill() {
    buckets_[0].clear();
    head_ = 0;
    const std::size_t filled = first_filled();
    Bucket& bucket = buckets_[filled];
    last_ = static_cast<std::uint64_t>(earliest_[filled]);
    for (const Event& event : bucket) {
      put(event);
    }
    if (bucket.capacity() > kMostKept) {
      Bucket().swap(bucket);
    } else {
      bucket.clear();
    }
  }

  std::array<Bucket, 65> buckets_;
  std::array<SimTime, 65> earliest_ = {};  ///< earliest time in each bucket that is filled
  std::size_t head_ = 0;                   ///< position in bucket 0: events before it were taken
  std::size_t size_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace sotto
