// What a process of a local job and the server of its store say to each other: a request's head,
// its key and its value; a reply's head and its value. Both are the same program on the same
// machine, and nobody else can reach the line, so that structs travel as they lie in memory.
#pragma once

#include <cstdint>

namespace sotto::internal {

enum class StoreRequest : std::uint32_t { set, get, remove };

struct StoreRequestHead {
  StoreRequest kind = StoreRequest::get;
  std::uint32_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
  std::int64_t wait_ms = 0;  ///< longest wait of a get in milliseconds
};

struct StoreReplyHead {
  std::uint64_t value_bytes = 0;
  std::uint64_t there = 0;  ///< 0: the wait of a get ended without a value
};

}  // namespace sotto::internal
