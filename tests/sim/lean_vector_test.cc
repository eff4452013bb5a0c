#include <sotto/sim/network/lean_vector.h>

#include <memory>
#include <utility>

#include <doctest/doctest.h>

namespace sotto::test::lean_vector_test {

TEST_CASE("a lean vector owns its elements and takes one pointer") {
  static_assert(sizeof(LeanVector<int>) == sizeof(void*));
  const auto counted = std::make_shared<int>(0);
  {
    LeanVector<std::shared_ptr<int>> list;
    CHECK(list.empty());
    for (int i = 0; i < 9; ++i) {
      list.push_back(i == 4 ? nullptr : counted);
    }
    CHECK(list.size() == 9);
    CHECK(list.capacity() == 16);
    list.erase(list.begin() + 4);
    CHECK(list.size() == 8);
    CHECK(list[4] == counted);
    list.erase(list.begin(), list.begin() + 3);
    CHECK(counted.use_count() == 6);
    list.pop_back();
    LeanVector<std::shared_ptr<int>> moved = std::move(list);
    CHECK(moved.size() == 4);
    CHECK(moved.back() == counted);
    moved.clear();
    CHECK(counted.use_count() == 1);
    moved.push_back(counted);
  }
  CHECK(counted.use_count() == 1);
}

}  // namespace sotto::test::lean_vector_test
