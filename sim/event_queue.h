// The queue of future events, in the order of (time, sequence of insertion).
//
// Virtual time never goes back, so a radix heap serves (Ahuja, Mehlhorn, Orlin and Tarjan 1990):
// bucket k holds the events with a time that first differs from the last one taken in bit k − 1.
// Events of one time always share a bucket and keep their order there, so that no sequence number
// is stored. An event moves at most once a bit, in practice a few times. A bucket is a list of
// chunks, each of which serves another bucket as soon as its events have moved: of millions of
// events that are moved no copy is held.
//
// One thread at a time. Owns copies of its events.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
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
    if (head_ < buckets_[0].size) {
      return now();
    }
    return earliest_[first_filled()];
  }

  /// Takes the next event; its time becomes the present. Requires !empty().
  Event pop() {
    check(size_ > 0, "an event is due");
    if (head_ == buckets_[0].size) {
      refill();
    }
    --size_;
    if (head_ % kChunk == 0) {
      front_ = buckets_[0].chunks[head_ / kChunk]->data();
    }
    const Event event = *front_++;
    if (++head_ % kChunk == 0 && buckets_[0].size > kChunk) {
      release(std::move(buckets_[0].chunks[head_ / kChunk - 1]));
    }
    return event;
  }

 private:
  /// Events of a chunk, of 3 KiB.
  static constexpr std::size_t kChunk = 128;
  /// Chunks that stay when no bucket needs them.
  static constexpr std::size_t kMostKept = 512;
  using Chunk = std::array<Event, kChunk>;
  struct Bucket {
    std::vector<std::unique_ptr<Chunk>> chunks;  ///< while it is empty, one or none
    std::size_t size = 0;                        ///< number of events in them
    Event* next = nullptr;                       ///< place of the next one, but in a new chunk
  };

  std::size_t bucket_of(SimTime time) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time) ^ last_));
  }
  std::size_t first_filled() const {
    std::size_t k = 1;
    while (buckets_[k].size == 0) {
      ++k;
    }
    return k;
  }
  void put(const Event& event) {
    const std::size_t k = bucket_of(event.time);
    Bucket& bucket = buckets_[k];
    earliest_[k] = bucket.size == 0 ? event.time : std::min(earliest_[k], event.time);
    if (bucket.size % kChunk == 0) {
      begin_chunk(bucket);
    }
    ++bucket.size;
    // Written where it stays: a copy of what was just put together field by field would stall.
    Event& place = *bucket.next++;
    place.time = event.time;
    place.subject = event.subject;
    place.version = event.version;
    place.kind = event.kind;
  }
  void begin_chunk(Bucket& bucket) {
    const std::size_t number = bucket.size / kChunk;
    if (number == bucket.chunks.size()) {
      bucket.chunks.push_back(spare_chunk());
    }
    bucket.next = bucket.chunks[number]->data();
  }
  std::unique_ptr<Chunk> spare_chunk() {
    if (spare_.empty()) {
      return std::make_unique_for_overwrite<Chunk>();
    }
    auto chunk = std::move(spare_.back());
    spare_.pop_back();
    return chunk;
  }
  void release(std::unique_ptr<Chunk> chunk) {
    if (chunk != nullptr && spare_.size() < kMostKept) {
      spare_.push_back(std::move(chunk));
    }
  }
  /// Moves the present to the next event, and spreads its bucket over the lower ones.
  void refill() {
    empty(buckets_[0]);
    head_ = 0;
    const std::size_t filled = first_filled();
    last_ = static_cast<std::uint64_t>(earliest_[filled]);
    Bucket& bucket = buckets_[filled];
    for (std::size_t first = 0; first < bucket.size; first += kChunk) {
      auto& chunk = bucket.chunks[first / kChunk];
      const std::size_t count = std::min(kChunk, bucket.size - first);
      for (std::size_t i = 0; i < count; ++i) {
        put((*chunk)[i]);
      }
      if (bucket.size > kChunk) {
        release(std::move(chunk));
      }
    }
    empty(bucket);
  }
  /// Forgets the events of a bucket, all of which have moved.
  void empty(Bucket& bucket) {
    if (bucket.size > kChunk) {
      for (auto& chunk : bucket.chunks) {
        release(std::move(chunk));
      }
      bucket.chunks.clear();
    }
    bucket.size = 0;
  }

  std::array<Bucket, 65> buckets_;
  std::vector<std::unique_ptr<Chunk>> spare_;
  std::array<SimTime, 65> earliest_ = {};  ///< earliest time in each bucket that is filled
  const Event* front_ = nullptr;           ///< the event at head_, but in a new chunk
  std::size_t head_ = 0;                   ///< position in bucket 0: events before it were taken
  std::size_t size_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace sotto
