// What every store must do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/comm/store.h>

#include "nodes.h"

namespace sotto::test {

inline Deadline soon() { return Deadline::after(std::chrono::milliseconds(30)); }

/// `first` and `second` are two handles on one store; for memory they are the same.
inline void check_store(Store& first, Store& second) {
  // Values come back as they were, from either handle; a second set replaces.
  const Status one = first.set("a/b.c-d_E9", bytes_of("one"));
  REQUIRE_MESSAGE(one.ok(), one.message());
  CHECK(second.get("a/b.c-d_E9", generous()).value() == bytes_of("one"));
  CHECK(second.set("a/b.c-d_E9", bytes_of("two")).ok());
  CHECK(first.get("a/b.c-d_E9", generous()).value() == bytes_of("two"));
  CHECK(first.set("empty", {}).ok());
  CHECK(second.get("empty", generous()).value().empty());
  // Keys that look alike are different keys.
  CHECK(first.set("x/y", bytes_of("slash")).ok());
  CHECK(first.set("x.y", bytes_of("dot")).ok());
  CHECK(first.set("..", bytes_of("up")).ok());
  CHECK(first.set("../..", bytes_of("up up")).ok());
  CHECK(second.get("x/y", generous()).value() == bytes_of("slash"));
  CHECK(second.get("..", generous()).value() == bytes_of("up"));
  CHECK(second.get("../..", generous()).value() == bytes_of("up up"));
  // Absent keys.
  const auto absent = first.get("absent/key", soon());
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.status().fault() == Fault::deadline);
  CHECK(absent.status().message().find("absent/key") != std::string::npos);
  CHECK(first.remove("absent/key").ok());
  CHECK(first.remove("x.y").ok());
  CHECK(second.get("x.y", soon()).status().fault() == Fault::deadline);
  // Keys that are refused.
  for (const std::string& key : {std::string(), std::string("a b"), std::string("ä"),
                                 std::string("a%b"), std::string(kMostStoreKeyBytes + 1, 'k')}) {
    CAPTURE(key);
    CHECK(first.set(key, {}).fault() == Fault::malformed);
    CHECK(first.get(key, soon()).status().fault() == Fault::malformed);
    CHECK(first.remove(key).fault() == Fault::malformed);
  }
  const std::string longest(kMostStoreKeyBytes, 'k');
  CHECK(first.set(longest, bytes_of("long")).ok());
  CHECK(second.get(longest, generous()).value() == bytes_of("long"));
}

inline void check_big_value(Store& first, Store& second) {
  std::vector<std::byte> big(16U << 20);
  for (std::size_t i = 0; i < big.size(); i += 4093) {
    big[i] = static_cast<std::byte>(i);
  }
  const Status set = first.set("big", big);
  REQUIRE_MESSAGE(set.ok(), set.message());
  const auto back = second.get("big", generous());
  REQUIRE_MESSAGE(back.ok(), back.status().message());
  CHECK(*back == big);
}

inline void check_waiting(Store& first, Store& second) {
  // A get that began before the set ends with it.
  std::thread late([&] { CHECK(first.set("late", bytes_of("here")).ok()); });
  const auto value = second.get("late", generous());
  late.join();
  REQUIRE_MESSAGE(value.ok(), value.status().message());
  CHECK(*value == bytes_of("here"));
}

inline void check_concurrent_use(Store& first, Store& second) {
  // Each of eight threads publishes for the next and reads from the one before, for rounds.
  spawn(8, [&](Rank rank) {
    Store& store = rank % 2 == 0 ? first : second;
    for (int round = 0; round < 10; ++round) {
      const auto mine = fmt::format("ring/{}/{}", rank, round);
      REQUIRE(store.set(mine, bytes_of(mine)).ok());
      const auto theirs = fmt::format("ring/{}/{}", (rank + 7) % 8, round);
      const auto value = store.get(theirs, generous());
      REQUIRE_MESSAGE(value.ok(), value.status().message());
      REQUIRE(*value == bytes_of(theirs));
    }
  });
}

inline void check_everything(Store& first, Store& second) {
  check_store(first, second);
  check_waiting(first, second);
  check_concurrent_use(first, second);
  check_big_value(first, second);
}

}  // namespace sotto::test
