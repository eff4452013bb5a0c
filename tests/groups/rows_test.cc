#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>
#include <sotto/groups/all_to_all.h>
#include <sotto/groups/halo.h>
#include <sotto/groups/program.h>

#include "in_exchange.h"

namespace sotto::test::rows_test {

namespace {

constexpr std::uint64_t kSeed = 31'337;
constexpr RowRoom kRoom{.width = 12, .slots = 2, .capacity = 5};

/// Sends random rows out and what came back to where it came from, and writes down both.
class ThereAndBack final : public Program {
 public:
  ThereAndBack(const ProgramNode& node, const RowRoom& room, const std::string& compressor)
      : node_(node),
        there_(node.everyone(), room, {.data = Carried::activation, .compressor = compressor}),
        back_(node.everyone(), room, {.data = Carried::activation, .compressor = compressor}) {
    stages_ = {{"there", [this](const RoundInput& input) { return send(input.round); }, &there_, 0},
               {"back",
                [this](const RoundInput&) {
                  back_.begin(there_.counts(), there_.rows());
                  return Status();
                },
                &back_, 0},
               {"note", [this](const RoundInput&) { return note(); }, nullptr, 0}};
  }

  std::span<const ProgramStage> stages() const override { return stages_; }
  const std::vector<std::uint16_t>& counts() const { return counts_; }
  const std::vector<float>& rows() const { return rows_; }
  AllToAll& there() { return there_; }
  const AllToAll& back() const { return back_; }

 private:
  Status send(Round round) {
    RandomStream stream(
        {.seed = kSeed, .rank = node_.rank(), .round = round, .purpose = Purpose::test});
    const auto p = static_cast<std::size_t>(node_.grid().nodes());
    counts_.clear();
    std::size_t rows = 0;
    for (std::size_t i = 0; i < p * there_.room().slots; ++i) {
      counts_.push_back(static_cast<std::uint16_t>(stream.below(there_.room().capacity + 1)));
      rows += counts_.back();
    }
    rows_.resize(rows * there_.room().width);
    for (float& value : rows_) {
      value = static_cast<float>(stream.normal());
    }
    there_.begin(counts_, rows_);
    return {};
  }
  Status note() {
    const auto x = node_.parameters();
    const auto came = back_.rows();
    const std::size_t n = std::min(x.size(), came.size());
    host_ops().axpy(1, came.first(n), x.first(n));
    return {};
  }

  ProgramNode node_;
  AllToAll there_;
  AllToAll back_;
  std::vector<ProgramStage> stages_;
  std::vector<std::uint16_t> counts_;
  std::vector<float> rows_;
};

ProgramJob there_and_back(int nodes, const std::string& compressor,
                          std::vector<ThereAndBack*>* programs = nullptr) {
  ProgramJob job{.nodes = nodes,
                 .grid = "expert=" + std::to_string(nodes),
                 .dimension = 200,
                 .seed = kSeed,
                 .build = {}};
  job.build = [compressor, programs](const ProgramNode& node) {
    auto program = std::make_unique<ThereAndBack>(node, kRoom, compressor);
    if (programs != nullptr) {
      programs->push_back(program.get());
    }
    return program;
  };
  return job;
}

}  // namespace

TEST_CASE("rows that go to all and back are where they were, to the bit") {
  CAPTURE(kSeed);
  for (const int p : {1, 2, 3, 8}) {
    CAPTURE(p);
    std::vector<ThereAndBack*> programs;
    ProgramJob job = there_and_back(p, "none", &programs);
    LockstepDriver driver;
    ProgramRunner runner(job);
    for (Rank rank = 0; rank < p; ++rank) {
      driver.add(runner.algorithm(rank));
    }
    const auto nothing = [](Rank, Round, std::span<const float>, std::span<float> g) {
      std::ranges::fill(g, 0.0F);
    };
    REQUIRE(driver.run(3, nothing).ok());
    for (const ThereAndBack* program : programs) {
      CHECK(std::ranges::equal(program->back().counts(), program->counts()));
      CHECK(same_bits(program->back().rows(), program->rows()));
    }
  }
}

TEST_CASE("what an all-to-all carries follows from its counts") {
  CAPTURE(kSeed);
  std::vector<ThereAndBack*> programs;
  ProgramJob job = there_and_back(4, "quant:8", &programs);
  ProgramRunner runner(job);
  LockstepDriver driver;
  for (Rank rank = 0; rank < 4; ++rank) {
    driver.add(runner.algorithm(rank));
  }
  REQUIRE(driver
              .run(1, [](Rank, Round, std::span<const float>,
                         std::span<float> g) { std::ranges::fill(g, 0.0F); })
              .ok());
  for (Rank rank = 0; rank < 4; ++rank) {
    ThereAndBack& program = *programs[static_cast<std::size_t>(rank)];
    ExchangeVolume due = program.there().volume_of(program.counts());
    due += program.there().volume_of(program.there().counts());  // as the way back sends
    for (const auto& [peer, edge] : due.sent) {
      CHECK(driver.traffic().at({rank, peer}).bytes == edge.bytes);
      CHECK(driver.traffic().at({rank, peer}).frames == edge.frames);
      CHECK(edge.bytes <= 2 * program.there().volume().sent.at(peer).bytes);
    }
  }
}

TEST_CASE("rows give the same bits in every driver") {
  CAPTURE(kSeed);
  for (const char* compressor : {"none", "quant:8", "fp16"}) {
    CAPTURE(compressor);
    std::vector<std::vector<float>> first;
    for (const std::string& driver : drivers()) {
      CAPTURE(driver);
      const ProgramRun run = ProgramRunner(there_and_back(4, compressor)).run(driver);
      for (const Status& status : run.statuses) {
        CAPTURE(status.message());
        REQUIRE(status.ok());
      }
      first = first.empty() ? run.models : first;
      CHECK(run.models == first);
    }
  }
}

TEST_CASE("an outlier in one row does not spoil another") {
  RowCodec codec(8, {.data = Carried::activation, .compressor = "quant:8"}, host_ops());
  std::vector<std::byte> bytes(codec.row_bytes());
  const std::vector<float> small(8, 0.001F);
  codec.encode(small, {.seed = kSeed}, bytes);
  std::vector<float> out(8);
  REQUIRE(codec.decode(bytes, out, false).ok());
  for (const float value : out) {
    CHECK(value == doctest::Approx(0.001).epsilon(0.02));
  }
}

TEST_CASE("payloads of rows that break their rules are refused, and named") {
  CAPTURE(kSeed);
  fuzz_payloads(kSeed, there_and_back(3, "none"), 400);
  fuzz_payloads(kSeed, there_and_back(3, "quant:8"), 200);
}

TEST_CASE("a payload is counts and rows, byte by byte") {
  ProgramJob job{.nodes = 2, .grid = "all=2", .dimension = 1, .seed = kSeed, .build = {}};
  const std::vector<std::uint16_t> counts = {0, 0, 0, 1};
  const std::vector<float> row = {1, -2};
  job.build = [&](const ProgramNode& node) {
    auto program = std::make_unique<ListProgram>();
    auto exchange =
        std::make_unique<AllToAll>(node.everyone(), RowRoom{.width = 2, .slots = 2, .capacity = 3},
                                   Encoding{.data = Carried::activation});
    AllToAll* const at = exchange.get();
    program->collectives.push_back(std::move(exchange));
    program->list = {{"rows",
                      [&counts, &row, at](const RoundInput&) {
                        at->begin(counts, row);
                        return Status();
                      },
                      at, 0}};
    return program;
  };
  // Node 0 has nothing in slot 0 of node 1, and a row in its slot 1.
  const InExchange nodes(job);
  const Bytes payload = payload_of(nodes.frame(1, 0));
  const std::vector<unsigned> due = {0, 0, 1, 0, 0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0};
  REQUIRE(payload.size() == due.size());
  for (std::size_t i = 0; i < due.size(); ++i) {
    CHECK(std::to_integer<unsigned>(payload[i]) == due[i]);
  }
  const FrameHeader header = parse_frame(nodes.frame(1, 0))->header;
  CHECK(header.algorithm == 30);
  CHECK(header.bucket == 4096);
  CHECK(header.elements == 2);
}

TEST_CASE("counts beyond the room are refused whatever they add up to") {
  InExchange open(there_and_back(2, "none"));
  OtherFrames frames(open.exchanges[0]);
  for (const std::array<std::uint16_t, 2> counts :
       {std::array<std::uint16_t, 2>{6, 0}, {0, 0xFFFF}, {0x8000, 0x8000}, {0xFFFF, 1}}) {
    Bytes payload(4 + 10 * kRoom.width * sizeof(float));
    std::memcpy(payload.data(), counts.data(), sizeof counts);
    frames.show(0, with_payload(frames.right(0), payload, 10 * kRoom.width));
    const Status status = open.nodes[0]->complete(frames.exchange());
    CHECK(status.fault() == Fault::malformed);
    CHECK(status.message().find("room for 5") != std::string::npos);
  }
  frames.show(0, with_payload(frames.right(0), Bytes(4), 11 * kRoom.width));
  CHECK(open.nodes[0]->complete(frames.exchange()).message().find("at most") != std::string::npos);
  CHECK(open.nodes[0]->counters().bad_frames == 5);
}

TEST_CASE("rooms and compressors that rows cannot have are refused") {
  ProgramJob job{.nodes = 1, .dimension = 4, .build = {}};
  const auto refused = [&](const RowRoom& room, const Encoding& encoding) {
    job.build = [&](const ProgramNode& node) -> std::unique_ptr<Program> {
      const AllToAll made(node.everyone(), room, encoding);
      return std::make_unique<ListProgram>();
    };
    std::string field;
    try {
      ProgramRunner(job).algorithm(0);
    } catch (const Error& error) {
      field = error.field();
    }
    return field;
  };
  const Encoding plain{.data = Carried::activation};
  CHECK(refused({.width = 0}, plain) == "width");
  CHECK(refused({.slots = 0}, plain) == "slots");
  CHECK(refused({.capacity = 0}, plain) == "capacity");
  CHECK(refused({.capacity = 70'000}, plain) == "capacity");
  CHECK(refused({.width = 1U << 20U, .capacity = 65'000}, plain) == "capacity");
  CHECK(refused({.width = 64}, {.data = Carried::gradient,
                                .memory = ErrorMemory::feedback,
                                .compressor = "sign"}) == "compressor");
  CHECK(refused({.width = 64}, plain).empty());
}

namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A random graph and its parts.
struct RandomGraph {
  RandomGraph(std::uint32_t nodes, int members, std::size_t count, std::uint64_t seed) {
    RandomStream stream({.seed = seed, .purpose = Purpose::test});
    for (std::uint32_t v = 0; v < nodes; ++v) {
      owner.push_back(static_cast<int>(stream.below(static_cast<std::uint64_t>(members))));
    }
    for (std::size_t e = 0; e < count; ++e) {
      edges.emplace_back(stream.below(nodes), stream.below(nodes));
    }
  }
  Edges edges;
  std::vector<int> owner;
};

constexpr std::size_t kWidth = 3;

/// Each node's row is its number and the round; ghosts are fetched, and then their rows are sent
/// home and added up.
class FetchAndReturn final : public Program {
 public:
  FetchAndReturn(const ProgramNode& node, const RandomGraph& graph, bool half, const Encoding& rows)
      : node_(node),
        part_(graph_part(graph.edges, graph.owner, node.grid().nodes(), node.rank())),
        fetch_(node.everyone(), part_.lists, kWidth, rows, Halo::Merge::replace),
        give_(node.everyone(), part_.lists.reversed(), kWidth,
              {.data = Carried::activation_gradient}, Halo::Merge::add),
        own_(part_.own.size() * kWidth),
        ghosts_(part_.ghosts.size() * kWidth),
        sums_(own_.size()),
        changed_(half ? part_.own.size() : 0) {
    stages_ = {
        {"fetch", [this](const RoundInput& input) { return fetch(input.round); }, &fetch_, 0},
        {"give",
         [this](const RoundInput&) {
           std::ranges::fill(sums_, 0.0F);
           give_.begin(ghosts_, sums_);
           return Status();
         },
         &give_, 0},
        {"note",
         [this](const RoundInput&) {
           const auto x = node_.parameters();
           for (std::size_t i = 0; i < part_.own.size(); ++i) {
             x[part_.own[i]] = sums_[i * kWidth];
           }
           for (std::size_t i = 0; i < part_.ghosts.size(); ++i) {
             x[part_.ghosts[i]] = ghosts_[i * kWidth];
           }
           return Status();
         },
         nullptr, 0}};
  }
  std::span<const ProgramStage> stages() const override { return stages_; }
  const GraphPart& part() const { return part_; }

 private:
  Status fetch(Round round) {
    for (std::size_t i = 0; i < part_.own.size(); ++i) {
      for (std::size_t k = 0; k < kWidth; ++k) {
        own_[i * kWidth + k] = static_cast<float>(1000 * round + part_.own[i]);
      }
      if (!changed_.empty()) {
        changed_[i] = static_cast<std::uint8_t>(round == 0 || part_.own[i] % 2 == 1);
      }
    }
    fetch_.begin(own_, ghosts_, changed_);
    return {};
  }

  ProgramNode node_;
  GraphPart part_;
  Halo fetch_;
  Halo give_;
  std::vector<float> own_;
  std::vector<float> ghosts_;
  std::vector<float> sums_;
  std::vector<std::uint8_t> changed_;
  std::vector<ProgramStage> stages_;
};

ProgramJob halo_job(const RandomGraph& graph, int members, bool half,
                    const Encoding& rows = {.data = Carried::activation}) {
  ProgramJob job{.nodes = members,
                 .grid = "part=" + std::to_string(members),
                 .dimension = graph.owner.size(),
                 .seed = kSeed,
                 .build = {}};
  job.build = [graph, half, rows](const ProgramNode& node) {
    return std::make_unique<FetchAndReturn>(node, graph, half, rows);
  };
  return job;
}

}  // namespace

TEST_CASE("a halo brings the rows of all neighbours, and takes home what they become") {
  CAPTURE(kSeed);
  for (const int p : {1, 2, 4}) {
    for (const bool half : {false, true}) {
      CAPTURE(p);
      CAPTURE(half);
      const RandomGraph graph(40, p, 60, kSeed);
      std::vector<std::vector<float>> first;
      for (const std::string& driver : drivers()) {
        CAPTURE(driver);
        const ProgramRun run = ProgramRunner(halo_job(graph, p, half)).run(driver);
        for (const Status& status : run.statuses) {
          CAPTURE(status.message());
          REQUIRE(status.ok());
        }
        first = first.empty() ? run.models : first;
        CHECK(run.models == first);
      }
      for (int member = 0; member < p; ++member) {
        const GraphPart part = graph_part(graph.edges, graph.owner, p, member);
        const auto row = [half](std::uint32_t v) {
          const bool old = half && v % 2 == 0;  // it was left out in the second round
          return static_cast<float>((old ? 0U : 1000U) + v);
        };
        for (const std::uint32_t v : part.ghosts) {
          CHECK(first[static_cast<std::size_t>(member)][v] == row(v));
        }
        for (const std::uint32_t v : part.own) {
          std::set<int> holders;
          for (const auto& [a, b] : graph.edges) {
            for (const auto& [at, other] : {std::pair(a, b), std::pair(b, a)}) {
              if (at == v && graph.owner[other] != member) {
                holders.insert(graph.owner[other]);
              }
            }
          }
          CHECK(first[static_cast<std::size_t>(member)][v] ==
                static_cast<float>(holders.size()) * row(v));
        }
      }
    }
  }
}

TEST_CASE("a halo carries what it said, and nothing where no edge is cut") {
  CAPTURE(kSeed);
  RandomGraph graph(50, 4, 70, kSeed);
  ProgramJob job = halo_job(graph, 4, false);
  job.rounds = 1;
  const ProgramRun run = ProgramRunner(job).run("eager");
  REQUIRE(run.ok());
  ProgramRunner again(job);
  for (Rank rank = 0; rank < 4; ++rank) {
    const auto algorithm = again.algorithm(rank);
    for (const auto& [peer, edge] : dynamic_cast<ProgramAlgorithm&>(*algorithm).volume().sent) {
      CHECK(run.traffic.at({rank, peer}).bytes == edge.bytes);
      CHECK(run.traffic.at({rank, peer}).frames == edge.frames);
    }
  }
  std::ranges::fill(graph.owner, 2);
  const ProgramRun alone = ProgramRunner(halo_job(graph, 4, false)).run("eager");
  CHECK(alone.ok());
  CHECK(alone.traffic.empty());
}

TEST_CASE("halo payloads that break their rules are refused, and named") {
  CAPTURE(kSeed);
  const RandomGraph graph(30, 3, 60, kSeed);
  fuzz_payloads(kSeed, halo_job(graph, 3, false), 400);
  // A row beyond the list.
  InExchange open(halo_job(graph, 3, false));
  OtherFrames frames(open.exchanges[0]);
  const GraphPart part = graph_part(graph.edges, graph.owner, 3, 0);
  const std::size_t listed = part.lists.in[0].rows.size();
  REQUIRE(listed % 8 != 0);
  Bytes payload = payload_of(frames.right(0));
  payload[listed / 8] |= std::byte{1} << (listed % 8);
  frames.show(0, with_payload(frames.right(0), payload, listed * kWidth));
  const Status status = open.nodes[0]->complete(frames.exchange());
  CHECK(status.fault() == Fault::malformed);
  CHECK(status.message().find("are agreed") != std::string::npos);
}

TEST_CASE("a halo whose ends hold rows refuses a frame that comes of other ones") {
  CAPTURE(kSeed);
  const RandomGraph graph(30, 3, 60, kSeed);
  const ProgramJob job = halo_job(
      graph, 3, false,
      {.data = Carried::activation, .memory = ErrorMemory::keyed, .compressor = "quant:4"});
  fuzz_payloads(kSeed, job, 400);
  InExchange open(job);
  OtherFrames frames(open.exchanges[0]);
  Bytes payload = payload_of(frames.right(0));
  payload[0] ^= std::byte{1};
  const std::size_t rows = graph_part(graph.edges, graph.owner, 3, 0).lists.in[0].rows.size();
  frames.show(0, with_payload(frames.right(0), payload, rows * kWidth));
  const Status status = open.nodes[0]->complete(frames.exchange());
  CHECK(status.fault() == Fault::unexpected);
  CHECK(status.message().find("other rows than this node holds") != std::string::npos);
  frames.show_right(0);
  CHECK(open.nodes[0]->complete(frames.exchange()).ok());
}

TEST_CASE("graphs with nodes or members that are none are refused") {
  const std::vector<int> owner = {0, 1, 2};
  const Edges wrong = {{0, 3}};
  CHECK_THROWS_AS(graph_part(wrong, owner, 3, 0), Error);
  CHECK_THROWS_AS(graph_part({}, owner, 2, 0), Error);
}

TEST_CASE("members of a halo know the same lists, or their programs differ") {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> edges = {{0, 2}, {1, 3}};
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> others = {{0, 3}, {1, 2}};
  const std::vector<int> owner = {0, 0, 1, 1};
  const HaloLists here = graph_part(edges, owner, 2, 0).lists;
  CHECK(here.digest == graph_part(edges, owner, 2, 1).lists.digest);
  const HaloLists there = graph_part(std::vector{edges[0]}, owner, 2, 0).lists;
  CHECK(here.digest != there.digest);
  // Each node of one part has a neighbour in the other one, whichever it is: the rows are equal.
  CHECK(here.digest == graph_part(others, owner, 2, 0).lists.digest);
  CHECK(here.digest != graph_part(edges, std::vector<int>{1, 1, 0, 0}, 2, 0).lists.digest);
}

}  // namespace sotto::test::rows_test
