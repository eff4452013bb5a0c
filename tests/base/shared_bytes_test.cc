// Bytes that several hold, and memory that is used again.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/byte_pool.h>
#include <sotto/base/shared_bytes.h>

namespace sotto::test::shared_bytes_test {

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::size_t count, int value) { return Bytes(count, static_cast<std::byte>(value)); }

}  // namespace

TEST_CASE("a copy of shared bytes, and a part of them, refer to the same memory") {
  SharedBytes part;
  const std::byte* there = nullptr;
  {
    const SharedBytes whole(bytes_of(8, 3));
    there = whole.data();
    const SharedBytes copy = whole;  // NOLINT(performance-unnecessary-copy-initialization)
    CHECK(copy.data() == there);
    CHECK(copy == whole);
    part = whole.part(std::span(whole).subspan(2, 3));
  }
  CHECK(part.data() == there + 2);
  CHECK(part == SharedBytes(bytes_of(3, 3)));
  CHECK_FALSE(part == SharedBytes(bytes_of(3, 4)));
  CHECK_FALSE(part == SharedBytes(bytes_of(4, 3)));
  CHECK(SharedBytes().empty());
  CHECK(SharedBytes() == SharedBytes(Bytes()));
}

TEST_CASE("memory comes back to its pool when the last that refers to it is gone") {
  BytePool pool;
  Bytes first = pool.take(BytePool::kLeast);
  CHECK(first.empty());
  const std::byte* const there = first.data();
  first.resize(BytePool::kLeast);
  SharedBytes shared = pool.share(std::move(first));
  CHECK(pool.take(BytePool::kLeast).data() != there);  // it is in use
  SharedBytes part = shared.part(std::span(shared).first(1));
  shared = {};
  CHECK(pool.take(BytePool::kLeast).data() != there);  // a part of it still is
  part = {};
  CHECK(pool.take(4 * BytePool::kLeast).data() != there);  // too short
  const Bytes again = pool.take(BytePool::kLeast);
  CHECK(again.data() == there);
  CHECK(again.empty());
}

TEST_CASE("memory of a pool may outlive it") {
  SharedBytes late;
  {
    BytePool pool;
    for (std::size_t k = 0; k < BytePool::kMostKept + 2; ++k) {
      late = pool.share(bytes_of(BytePool::kLeast, 1));
    }
  }
  CHECK(late == SharedBytes(bytes_of(BytePool::kLeast, 1)));
}

}  // namespace sotto::test::shared_bytes_test
