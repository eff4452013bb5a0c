// What the server of a store keeps, and for whom.
#include "../../comm/zmq/store/stored_values.h"

#include <string>

#include <doctest/doctest.h>

#include <sotto/comm/run_keys.h>

#include "../../comm/zmq/store/store_rules.h"

namespace sotto::test::stored_values_test {

using namespace sotto::internal;

namespace {

const std::vector<std::byte> kBytes(100);

StoredValues::KeyedPiece piece(std::string_view key, std::uint64_t total, std::uint64_t offset,
                               std::size_t bytes) {
  return {key, {total, offset, std::span(kBytes).first(bytes)}};
}

}  // namespace

TEST_CASE("a key's last part says whose it is") {
  for (const auto* key : {"m/3", "3", "a/b/3", "x-1/3"}) {
    CAPTURE(key);
    CHECK(may_set(3, key, {}));
    CHECK(may_set(0, key, 3));
    CHECK_FALSE(may_set(1, key, {}));
    CHECK_FALSE(may_set(1, key, 1));
    CHECK_FALSE(may_get(1, key));
    CHECK_FALSE(may_remove(1, key, {}));
    CHECK(may_remove(3, key, {}));
  }
  CHECK(may_set(3, "m/3-5", {}));
  CHECK(may_get(5, "m/3-5"));
  CHECK(may_remove(5, "m/3-5", 3));
  CHECK_FALSE(may_set(5, "m/3-5", {}));
  CHECK_FALSE(may_get(4, "m/3-5"));
  CHECK(may_set(3, "m/3-all", {}));
  CHECK(may_get(5, "m/3-all"));
  CHECK_FALSE(may_set(5, "m/3-all", {}));
  CHECK_FALSE(may_remove(5, "m/3-all", {}));
  CHECK_FALSE(may_set(5, "m/x-all", {}));
  CHECK(may_set(4, "m/any", {}));
  CHECK(may_set(4, "m/any", 4));
  CHECK_FALSE(may_set(4, "m/any", 5));
  CHECK_FALSE(may_remove(4, "m/any", 5));
  CHECK_FALSE(may_remove(4, "m/any", {}));
  // What looks like a rank and is none is node 0's.
  for (const auto* key : {"m", "", "3/m", "m/", "m/03", "m/+3", "m/-3", "m/3-", "m/3-x", "m/3-5-7",
                          "m/3 ", "m/99999999999", "any/m", "m/ANY"}) {
    CAPTURE(key);
    CHECK_FALSE(may_set(3, key, {}));
    CHECK_FALSE(may_set(3, key, 3));
    CHECK_FALSE(may_remove(3, key, 3));
    CHECK(may_get(3, key));
    CHECK(may_set(0, key, {}));
  }
}

TEST_CASE("keys that nodes make for themselves are theirs") {
  const std::string own = node_key("m", 3);
  CHECK(own == "m/3");
  CHECK(may_set(3, own, {}));
  CHECK_FALSE(may_get(5, own));
  const std::string between = node_key_for("m", 3, 5);
  CHECK(between == "m/3-5");
  CHECK(may_set(3, between, {}));
  CHECK(may_get(5, between));
  CHECK_FALSE(may_get(4, between));
  const std::string told = node_key_for_all("m", 3);
  CHECK(told == "m/3-all");
  CHECK(may_set(3, told, {}));
  CHECK_FALSE(may_set(5, told, {}));
  CHECK(may_get(5, told));
  CHECK(first_key("m") == "m/any");
  CHECK(may_set(5, given_up_key(), {}));
  CHECK_FALSE(may_set(5, given_up_key(), 3));
}

TEST_CASE("a value is there once its last piece is, and pieces out of order are refused") {
  StoredValues values;
  CHECK(values.set(1, "line", piece("m/1", 150, 0, 100)).value() == false);
  CHECK(values.get(1, "m/1").value() == nullptr);
  CHECK(values.set(1, "line", piece("m/1", 150, 100, 50)).value() == true);
  const auto* value = values.get(1, "m/1").value();
  REQUIRE(value != nullptr);
  CHECK(value->bytes.size() == 150);
  const auto before = value->version;
  for (const auto& wrong : {piece("m/1", 150, 50, 50), piece("m/1", 151, 100, 51),
                            piece("n/1", 150, 100, 50), piece("m/1", 150, 101, 49)}) {
    CHECK(values.set(1, "line", piece("m/1", 150, 0, 100)).ok());
    CHECK(values.set(1, "line", wrong).status().fault() == Fault::malformed);
    CHECK(values.set(1, "line", piece("m/1", 150, 100, 50)).status().fault() == Fault::malformed);
  }
  CHECK(values.set(1, "other", piece("m/1", 150, 100, 50)).status().fault() == Fault::malformed);
  CHECK(values.get(1, "m/1").value()->version == before);
  CHECK(values.set(1, "line", piece("m/1", 0, 0, 0)).value() == true);
  CHECK(values.get(0, "m/1").value()->version != before);
}

TEST_CASE("a client has so much room, and what it replaces, removes or drops makes some") {
  StoredValues values(2 * (100 + StoredValues::kKeyBytes));
  CHECK(values.set(1, "a", piece("m/1", 100, 0, 100)).ok());
  CHECK(values.set(1, "a", piece("n/1", 100, 0, 50)).ok());  // counts from its first piece on
  const auto full = values.set(1, "b", piece("o/1", 0, 0, 0));
  CHECK(full.status().fault() == Fault::unexpected);
  CHECK(full.status().message().find("may have") != std::string::npos);
  CHECK(values.set(2, "c", piece("m/2", 100, 0, 100)).ok());  // another's room
  values.drop("a");
  CHECK(values.set(1, "b", piece("o/1", 100, 0, 100)).ok());
  CHECK(values.set(1, "b", piece("o/1", 100, 0, 100)).ok());
  CHECK_FALSE(values.set(1, "b", piece("o/1", 101, 0, 100)).ok());
  CHECK(values.remove(0, "m/1").ok());
  CHECK(values.set(1, "b", piece("p/1", 100, 0, 100)).ok());
  CHECK_FALSE(values.set(1, "b", piece("q/1", 0, 0, 0)).ok());
  CHECK(
      values.set(0, "z", piece("one", 5000, 0, 100)).ok());  // node 0 and the unnamed are not bound
  CHECK(values.set({}, "y", piece("two", 5000, 0, 100)).ok());
}

}  // namespace sotto::test::stored_values_test
