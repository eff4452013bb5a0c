#include <sotto/trainers/data/partition.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto::test::partition_test {

namespace {

constexpr int kClasses = 10;

std::vector<std::int32_t> random_labels(std::size_t count, std::uint64_t seed) {
  RandomStream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<std::int32_t> labels(count);
  for (auto& label : labels) {
    label = static_cast<std::int32_t>(stream.below(kClasses));
  }
  return labels;
}

/// Share of a shard's most frequent class, averaged over the nodes: 1/classes … 1.
double concentration(const std::vector<std::vector<std::uint32_t>>& shards,
                     const std::vector<std::int32_t>& labels) {
  double sum = 0;
  for (const auto& shard : shards) {
    std::vector<double> counts(kClasses);
    for (const std::uint32_t row : shard) {
      ++counts[static_cast<std::size_t>(labels[row])];
    }
    sum += *std::max_element(counts.begin(), counts.end()) / static_cast<double>(shard.size());
  }
  return sum / static_cast<double>(shards.size());
}

}  // namespace

TEST_CASE("every example goes to exactly one node, and shares differ by at most one") {
  for (const char* spec :
       {"iid", "label", "dirichlet:0.1", "dirichlet:0.0001", "dirichlet:1000000", "blocks"}) {
    for (const std::size_t count : {1UL, 7UL, 32UL, 1003UL}) {
      const auto labels = random_labels(count, count);
      for (const int nodes : {1, 2, 7, 32, 1003}) {
        if (static_cast<std::size_t>(nodes) > count) {
          continue;
        }
        CAPTURE(spec);
        CAPTURE(count);
        CAPTURE(nodes);
        const auto shards = partition_examples(labels, kClasses, nodes, parse_partition(spec), 3);
        REQUIRE(shards.size() == static_cast<std::size_t>(nodes));
        std::vector<int> seen(count);
        for (const auto& shard : shards) {
          CHECK(shard.size() >= count / shards.size());
          CHECK(shard.size() <= count / shards.size() + 1);
          for (const std::uint32_t row : shard) {
            REQUIRE(row < count);
            ++seen[row];
          }
        }
        CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
      }
    }
  }
}

TEST_CASE("blocks are stretches of the data in their order, whatever the seed") {
  const auto labels = random_labels(1003, 5);
  const auto shards = partition_examples(labels, kClasses, 7, parse_partition("blocks"), 1);
  std::uint32_t next = 0;
  for (const auto& shard : shards) {
    for (const std::uint32_t row : shard) {
      REQUIRE(row == next++);
    }
  }
  CHECK(shards == partition_examples(labels, kClasses, 7, parse_partition("blocks"), 2));
}

TEST_CASE("a partition is a function of the seed") {
  const auto labels = random_labels(500, 1);
  for (const char* spec : {"iid", "dirichlet:0.5", "sizes:0.5"}) {
    const auto split = [&](std::uint64_t seed) {
      return partition_examples(labels, kClasses, 8, parse_partition(spec), seed);
    };
    CHECK(split(1) == split(1));
    CHECK(split(1) != split(2));
  }
}

TEST_CASE("alpha runs from one class a node to the mix of all data") {
  const auto labels = random_labels(20000, 2);
  const auto at = [&](const char* spec) {
    return concentration(partition_examples(labels, kClasses, 10, parse_partition(spec), 4),
                         labels);
  };
  const double iid = at("iid");
  CHECK(iid < 0.13);  // 0.1 and sampling noise
  CHECK(std::abs(at("dirichlet:100000") - iid) < 0.02);
  CHECK(at("dirichlet:1") > at("dirichlet:100") + 0.1);
  CHECK(at("dirichlet:0.01") > 0.5);
  // Ten shards of sorted labels of ten about equal classes.
  CHECK(at("label") > 0.9);
}

TEST_CASE("label gives a node neighbouring classes only") {
  const auto labels = random_labels(1000, 5);
  for (const auto& shard :
       partition_examples(labels, kClasses, 20, {.kind = Partition::Kind::label}, 0)) {
    std::set<std::int32_t> classes;
    for (const std::uint32_t row : shard) {
      classes.insert(labels[row]);
    }
    CHECK(classes.size() <= 2);
  }
}

TEST_CASE("sizes deals every example to one node, unequally, and leaves no node without") {
  for (const char* spec : {"sizes:0.0001", "sizes:0.3", "sizes:1", "sizes:1000000"}) {
    for (const std::size_t count : {1UL, 9UL, 1003UL}) {
      const auto labels = random_labels(count, count);
      for (const int nodes : {1, 2, 9, 1003}) {
        if (static_cast<std::size_t>(nodes) > count) {
          continue;
        }
        CAPTURE(spec);
        CAPTURE(count);
        CAPTURE(nodes);
        const auto shards = partition_examples(labels, kClasses, nodes, parse_partition(spec), 3);
        REQUIRE(shards.size() == static_cast<std::size_t>(nodes));
        std::set<std::uint32_t> seen;
        std::size_t dealt = 0;
        for (const auto& shard : shards) {
          CHECK(!shard.empty());
          dealt += shard.size();
          seen.insert(shard.begin(), shard.end());
        }
        CHECK(dealt == count);
        CHECK(seen.size() == count);
      }
    }
  }
}

TEST_CASE("beta runs from one node with nearly all data to equal shares") {
  const auto labels = random_labels(20000, 2);
  const auto largest = [&](const char* spec) {
    std::size_t most = 0;
    for (const auto& shard : partition_examples(labels, kClasses, 10, parse_partition(spec), 4)) {
      most = std::max(most, shard.size());
    }
    return most;
  };
  CHECK(largest("sizes:0.001") > 18000);
  CHECK(largest("sizes:1") > 3000);
  CHECK(largest("sizes:100000") < 2100);
}

TEST_CASE("a class without examples is never drawn") {
  std::vector<std::int32_t> labels(100, 3);
  std::fill_n(labels.begin(), 40, 7);
  const auto shards = partition_examples(labels, kClasses, 9, parse_partition("dirichlet:0.3"), 6);
  std::size_t total = 0;
  for (const auto& shard : shards) {
    total += shard.size();
  }
  CHECK(total == 100);
}

TEST_CASE("partition specifications read back what they print, and wrong ones are refused") {
  for (const char* spec : {"iid", "label", "dirichlet:0.1", "dirichlet:12.5", "sizes:0.5"}) {
    CHECK(parse_partition(spec).spec() == spec);
  }
  for (const char* spec :
       {"", "IID", "iid:1", "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1",
        "dirichlet:nan", "dirichlet:inf", "dirichlet:1e-9", "dirichlet:1x", "sizes",
        "sizes:", "sizes:0", "sizes:-2", "sizes:1e7", "label:3"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(parse_partition(spec), Error);
  }
}

TEST_CASE("more nodes than examples, or none, are refused") {
  const auto labels = random_labels(5, 0);
  CHECK_THROWS_WITH_AS(partition_examples(labels, kClasses, 6, {}, 0),
                       doctest::Contains("5 training examples"), Error);
  CHECK_THROWS_AS(partition_examples(labels, kClasses, 0, {}, 0), Error);
  CHECK_THROWS_AS(partition_examples(labels, kClasses, -1, {}, 0), Error);
}

}  // namespace sotto::test::partition_test
