// Counts that nodes keep together: every driver, both forms, exact sums, foreign bytes.
#include <sotto/groups/count_exchange.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/base/varint.h>
#include <sotto/groups/count_codec.h>
#include <sotto/groups/program.h>

#include "in_exchange.h"

namespace sotto::test::count_exchange_test {

namespace {

constexpr std::uint64_t kSeed = 90'210;
constexpr std::size_t kCounts = 61;
constexpr std::int32_t kFirst = 50;
using Counts = std::vector<std::int32_t>;

/// What a node changes in a round: about a third of the counts, by −1 to 3.
void change(Rank rank, Round round, std::span<std::int32_t> counts) {
  RandomStream draw({.seed = kSeed, .rank = rank, .round = round, .purpose = Purpose::test});
  for (std::int32_t& count : counts) {
    if (draw.below(3) == 0) {
      count += static_cast<std::int32_t>(draw.below(5)) - 1;
    }
  }
}

/// Changes counts in every round; the parameters are what all agree on.
class Counting final : public Program {
 public:
  Counting(const ProgramNode& node, const CountRoom& room)
      : node_(node), exchange_(node.everyone(), room) {
    stages_ = {{"changes",
                [this](const RoundInput& input) {
                  change(node_.rank(), input.round, own_);
                  exchange_.begin(agreed_, own_);
                  return Status();
                },
                &exchange_, 0},
               {"note",
                [this](const RoundInput&) {
                  CHECK(own_ == agreed_);
                  std::ranges::transform(agreed_, node_.parameters().begin(),
                                         [](std::int32_t n) { return static_cast<float>(n); });
                  return Status();
                },
                nullptr, 0}};
  }
  std::span<const ProgramStage> stages() const override { return stages_; }
  const CountExchange& exchange() const { return exchange_; }

 private:
  ProgramNode node_;
  CountExchange exchange_;
  Counts agreed_ = Counts(kCounts, kFirst);
  Counts own_ = Counts(kCounts, kFirst);
  std::vector<ProgramStage> stages_;
};

ProgramJob job_of(int nodes, CountForm form) {
  return {.nodes = nodes,
          .grid = "site=" + std::to_string(nodes),
          .dimension = kCounts,
          .rounds = 3,
          .seed = kSeed,
          .build = [form](const ProgramNode& node) {
            return std::make_unique<Counting>(node, CountRoom{.counts = kCounts, .form = form});
          }};
}

/// What all must agree on after the rounds: the first counts and all changes.
std::vector<float> sum_of(int nodes, Round rounds) {
  Counts sum(kCounts, kFirst);
  for (Round round = 0; round < rounds; ++round) {
    const Counts before = sum;
    for (Rank rank = 0; rank < nodes; ++rank) {
      Counts own = before;
      change(rank, round, own);
      for (std::size_t k = 0; k < kCounts; ++k) {
        sum[k] += own[k] - before[k];
      }
    }
  }
  return {sum.begin(), sum.end()};
}

std::vector<std::byte> bytes_of(const Counts& before, const Counts& now) {
  std::vector<std::byte> out(max_change_bytes(before.size(), before.size()));
  out.resize(encode_changes(before, now, out).bytes);
  return out;
}

}  // namespace

TEST_CASE("changes of counts have these bytes") {
  const auto bytes = bytes_of({5, 5, 5, 5, 5}, {5, 6, 5, 5, 3});
  const std::array<std::uint8_t, 5> due = {2, 1, 2, 2, 3};  // +1 after one, −2 after two
  REQUIRE(bytes.size() == due.size());
  for (std::size_t k = 0; k < due.size(); ++k) {
    CHECK(bytes[k] == static_cast<std::byte>(due[k]));
  }
  CHECK(bytes_of({1, 2}, {1, 2}).size() == 1);
  CHECK(zigzag(std::numeric_limits<std::int32_t>::min()) == 0xFFFFFFFFU);
  for (const std::int32_t value : {0, 1, -1, 77, -78, std::numeric_limits<std::int32_t>::min()}) {
    CHECK(from_zigzag(zigzag(value)) == value);
  }
}

TEST_CASE("changes of counts come back, within the bytes that they take at most") {
  CAPTURE(kSeed);
  RandomStream draw({.seed = kSeed, .purpose = Purpose::test});
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    const std::size_t counts = 1 + draw.below(400);
    const std::size_t most = 1 + draw.below(counts);
    Counts before(counts);
    std::ranges::generate(before, [&] { return static_cast<std::int32_t>(draw.next_u64()); });
    Counts now = before;
    for (std::size_t k = 0; k < most; ++k) {
      now[draw.below(counts)] = static_cast<std::int32_t>(draw.next_u64() >> draw.below(64));
    }
    std::vector<std::byte> out(max_change_bytes(counts, most));
    const EncodedChanges encoded = encode_changes(before, now, out);
    CHECK(encoded.changes <= most);
    const auto bytes = std::span(out).first(encoded.bytes);
    REQUIRE(check_changes(bytes, counts).ok());
    add_changes(bytes, before);
    CHECK(before == now);
    CHECK_FALSE(check_changes(bytes.first(bytes.size() - 1), counts).ok());
  }
}

TEST_CASE("bytes that are no changes of so many counts are refused") {
  using Raw = std::vector<std::uint8_t>;
  for (const Raw& raw :
       {Raw{}, Raw{3, 0, 2}, Raw{1, 0, 0}, Raw{1, 2, 2}, Raw{1, 0, 2, 9}, Raw{0x80}, Raw{1, 0x80},
        Raw{1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F}, Raw{2, 1, 2, 0, 2},
        Raw{1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 2}}) {
    CAPTURE(raw.size());
    const Status status = check_changes(std::as_bytes(std::span(raw)), 2);
    CHECK(status.fault() == Fault::malformed);
  }
}

TEST_CASE("all nodes have the sum of all changes after each round, in every driver and form") {
  CAPTURE(kSeed);
  for (const CountForm form : {CountForm::gather, CountForm::scatter}) {
    for (const int nodes : {1, 2, 3, 5}) {
      CAPTURE(nodes);
      const std::vector<float> due = sum_of(nodes, 3);
      for (const std::string& driver : drivers()) {
        CAPTURE(driver);
        const ProgramRun run = ProgramRunner(job_of(nodes, form)).run(driver);
        for (const Status& status : run.statuses) {
          REQUIRE_MESSAGE(status.ok(), status.message());
        }
        for (const auto& model : run.models) {
          CHECK(model == due);
        }
      }
    }
  }
}

TEST_CASE("what counts carry is what is said of them, and at most their volume") {
  CAPTURE(kSeed);
  for (const CountForm form : {CountForm::gather, CountForm::scatter}) {
    ProgramRunner runner(job_of(4, form));
    LockstepDriver driver;
    std::vector<const CountExchange*> exchanges;
    for (Rank rank = 0; rank < 4; ++rank) {
      auto algorithm = runner.algorithm(rank);
      const auto& program = dynamic_cast<ProgramAlgorithm&>(*algorithm).program();
      exchanges.push_back(&dynamic_cast<const Counting&>(program).exchange());
      driver.add(std::move(algorithm));
    }
    const auto nothing = [](Rank, Round, std::span<const float>, std::span<float> g) {
      std::ranges::fill(g, 0.0F);
    };
    REQUIRE(driver.run(1, nothing).ok());
    for (Rank rank = 0; rank < 4; ++rank) {
      const CountExchange& exchange = *exchanges[static_cast<std::size_t>(rank)];
      std::uint64_t sent = 0;
      for (const auto& [peer, edge] : exchange.volume().sent) {
        const EdgeTraffic traffic = driver.traffic().at({rank, peer});
        CHECK(traffic.frames == edge.frames);
        CHECK(traffic.bytes <= edge.bytes);
        CHECK(edge.bytes ==
              exchanges[static_cast<std::size_t>(peer)]->volume().received.at(rank).bytes);
        sent += traffic.bytes;
      }
      CHECK(exchange.sent_bytes() == sent);
    }
  }
}

TEST_CASE("a form is chosen by the number of nodes") {
  for (const int nodes : {2, 3, 4, 9}) {
    ProgramRunner runner(job_of(nodes, CountForm::choose));
    const auto algorithm = runner.algorithm(0);
    const auto& program = dynamic_cast<ProgramAlgorithm&>(*algorithm).program();
    const CountExchange& exchange = dynamic_cast<const Counting&>(program).exchange();
    CHECK(exchange.room().form == (nodes <= 3 ? CountForm::gather : CountForm::scatter));
    CHECK(exchange.phases() == (nodes <= 3 ? 1 : 2));
  }
}

TEST_CASE("foreign bytes in place of counts are refused by sender, and the right ones taken then") {
  CAPTURE(kSeed);
  fuzz_payloads(kSeed, job_of(3, CountForm::gather), 150, "once all changes are added");
  fuzz_payloads(kSeed, job_of(4, CountForm::scatter), 150, "once all changes are added");
}

TEST_CASE("counts that would be negative end the run, by their number") {
  ProgramJob job = job_of(2, CountForm::gather);
  job.build = [](const ProgramNode& node) {
    auto program = std::make_unique<ListProgram>();
    auto counts = std::make_shared<std::pair<Counts, Counts>>(Counts(3, 1), Counts(3, 1));
    auto exchange = std::make_unique<CountExchange>(node.everyone(), CountRoom{.counts = 3});
    program->list = {{"less",
                      [counts, at = exchange.get()](const RoundInput&) {
                        --counts->second[1];
                        at->begin(counts->first, counts->second);
                        return Status();
                      },
                      exchange.get(), 0}};
    program->collectives.push_back(std::move(exchange));
    return program;
  };
  const ProgramRun run = ProgramRunner(job).run("eager");
  CHECK(run.statuses.front().fault() == Fault::malformed);
  CHECK_MESSAGE(run.statuses.front().message().find("count number 1 is -1") != std::string::npos,
                run.statuses.front().message());
}

TEST_CASE("no counts are refused") {
  ProgramJob job = job_of(2, CountForm::gather);
  job.build = [](const ProgramNode& node) {
    return std::make_unique<Counting>(node, CountRoom{.counts = 0});
  };
  CHECK_THROWS_WITH_AS(ProgramRunner(job).algorithm(0), doctest::Contains("counts"), Error);
}

TEST_CASE("fewer counts than nodes are added up, though some nodes have no chunk") {
  ProgramJob job = job_of(5, CountForm::scatter);
  job.build = [](const ProgramNode& node) {
    auto program = std::make_unique<ListProgram>();
    auto counts = std::make_shared<std::pair<Counts, Counts>>(Counts(2), Counts(2));
    auto exchange = std::make_unique<CountExchange>(
        node.everyone(), CountRoom{.counts = 2, .most = 1, .form = CountForm::scatter});
    program->list = {{"more",
                      [counts, rank = node.rank(), at = exchange.get()](const RoundInput&) {
                        ++counts->second[static_cast<std::size_t>(rank % 2)];
                        at->begin(counts->first, counts->second);
                        return Status();
                      },
                      exchange.get(), 0},
                     {"look",
                      [counts](const RoundInput& input) {
                        const auto rounds = static_cast<std::int32_t>(input.round) + 1;
                        CHECK(counts->first == Counts{3 * rounds, 2 * rounds});
                        CHECK(counts->second == counts->first);
                        return Status();
                      },
                      nullptr, 0}};
    program->collectives.push_back(std::move(exchange));
    return program;
  };
  for (const std::string& driver : drivers()) {
    const ProgramRun run = ProgramRunner(job).run(driver);
    for (const Status& status : run.statuses) {
      CHECK_MESSAGE(status.ok(), status.message());
    }
  }
}

}  // namespace sotto::test::count_exchange_test
