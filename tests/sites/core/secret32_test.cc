// What is secret is wiped where it goes, and where a container moves it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/core/sums/secret_shares.h>

namespace sotto::test::secret32_test {

using namespace sotto::sites;

namespace {

Bytes32 known() {
  Bytes32 bytes;
  bytes.fill(0xA5);
  return bytes;
}

/// Memory that is looked at as it is given back: how many of its bytes are not 0.
std::size_t left_over = 0;

template <typename T>
struct LookingAllocator {
  using value_type = T;

  LookingAllocator() = default;
  template <typename U>
  LookingAllocator(const LookingAllocator<U>& /*other*/) {}  // NOLINT: as allocators convert

  T* allocate(std::size_t count) {
    void* memory = ::operator new(count * sizeof(T));
    std::memset(memory, 0, count * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory);
    left_over += static_cast<std::size_t>(
        std::count_if(bytes, bytes + count * sizeof(T), [](unsigned char b) { return b != 0; }));
    ::operator delete(memory);
  }
  bool operator==(const LookingAllocator& /*other*/) const { return true; }
};

}  // namespace

TEST_CASE("a secret leaves nothing behind in memory") {
  alignas(Secret32) std::array<std::byte, sizeof(Secret32)> memory{};
  auto* secret = new (memory.data()) Secret32(known());
  CHECK(std::ranges::equal(*secret, known()));
  CHECK(std::ranges::count(memory, std::byte{0xA5}) == 32);
  std::destroy_at(secret);
  CHECK(std::ranges::count(memory, std::byte{0}) == 32);
}

TEST_CASE("nor does a container of secrets that grows, which plain bytes would") {
  const auto grow = [](auto values) {
    left_over = 0;
    for (int k = 0; k < 100; ++k) {
      values.push_back(known());
    }
    values.clear();
    values.shrink_to_fit();
    return left_over;
  };
  CHECK(grow(std::vector<Secret32, LookingAllocator<Secret32>>()) == 0);
  CHECK(grow(std::vector<Bytes32, LookingAllocator<Bytes32>>()) > 0);
}

TEST_CASE("a copy lives on when the original is wiped") {
  Secret32 copy;
  {
    const Secret32 original(known());
    copy = original;
  }
  CHECK(std::ranges::equal(copy, known()));
}

}  // namespace sotto::test::secret32_test
