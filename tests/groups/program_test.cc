#include <sotto/groups/program.h>

#include <cstring>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/groups/vector_collective.h>

#include "in_exchange.h"

namespace sotto::test::program_test {

namespace {

constexpr std::uint64_t kSeed = 90'210;
constexpr std::size_t kElements = 37;

/// Sums the gradient along the rows of a grid, then shares the result along its columns and among
/// all: three groups, of which some have pairs of nodes in common.
struct Grouped {
  double flops = 0;
  std::string name = "share";
  std::size_t elements = kElements;
  bool fails = false;

  std::unique_ptr<Program> operator()(const ProgramNode& node) const {
    auto program = std::make_unique<ListProgram>();
    ListProgram* const own = program.get();
    const std::span<float> x = node.parameters();
    const VectorOptions options{.elements = elements};
    program->collectives.push_back(make_all_reduce(node.member("row"), options));
    VectorOptions compressed = options;
    compressed.encoding = {Carried::update, ErrorMemory::feedback, "quant:4"};
    program->collectives.push_back(make_broadcast(node.member("column"), compressed, 0));
    program->collectives.push_back(make_all_reduce(node.everyone(), options));
    const auto begin = [own](std::size_t at) {
      dynamic_cast<VectorCollective&>(*own->collectives[at]).begin(own->v);
      return Status();
    };
    program->list = {{"sum",
                      [own, begin, n = elements](const RoundInput& input) {
                        own->v.assign(input.gradient.begin(), input.gradient.end());
                        own->v.resize(n);
                        return begin(0);
                      },
                      own->collectives[0].get(), 0},
                     {name,
                      [begin, f = fails](const RoundInput&) {
                        return f ? Status(Fault::non_finite, "it overflowed") : begin(1);
                      },
                      own->collectives[1].get(), flops},
                     {"total", [begin](const RoundInput&) { return begin(2); },
                      own->collectives[2].get(), flops},
                     {"store",
                      [own, x](const RoundInput&) {
                        host_ops().axpy(1, std::span(own->v).first(x.size()), x);
                        return Status();
                      },
                      nullptr, flops}};
    return program;
  }
};

ProgramJob grouped_job(const Grouped& grouped = {}) {
  return {.nodes = 6,
          .grid = "column=2,row=3",
          .dimension = kElements,
          .rounds = 3,
          .seed = kSeed,
          .build = grouped};
}

}  // namespace

TEST_CASE("a program over several groups gives the same bits in every driver") {
  CAPTURE(kSeed);
  std::vector<std::vector<float>> first;
  for (const std::string& driver : drivers()) {
    CAPTURE(driver);
    const ProgramRun run = ProgramRunner(grouped_job()).run(driver);
    for (const Status& status : run.statuses) {
      CAPTURE(status.message());
      REQUIRE(status.ok());
    }
    first = first.empty() ? run.models : first;
    CHECK(run.models == first);
  }
  for (const auto& model : first) {
    CHECK(model == first[0]);
  }
}

namespace {

/// Node 3 gets `other` in place of node 0's frame, and then the right one with the number of
/// other's group; both are refused, and then the right one is taken.
void show(InExchange& nodes, const Bytes& other) {
  OtherFrames frames(nodes.exchanges[3]);
  const std::size_t edge = nodes.edge(3, 0);
  frames.show(edge, other);
  Algorithm& node = *nodes.nodes[3];
  const Status status = node.complete(frames.exchange());
  CHECK(!status.ok());
  CHECK(status.message().find("frame from node 0 is refused") != std::string::npos);
  CHECK(node.counters().bad_frames == 1);
  Bytes relabelled = frames.right(edge);
  FrameHeader header = parse_frame(relabelled)->header;
  header.bucket = parse_frame(other)->header.bucket;
  seal_frame(header, relabelled);
  frames.show(edge, std::move(relabelled));
  const Status group = node.complete(frames.exchange());
  CHECK(group.fault() == Fault::unexpected);
  CHECK(group.message().find("bucket") != std::string::npos);
  CHECK(node.counters().bad_frames == 2);
  frames.show_right(edge);
  CHECK(node.complete(frames.exchange()).ok());
}

}  // namespace

TEST_CASE("two groups over one pair of nodes never take each other's frames") {
  CAPTURE(kSeed);
  // Node 0 and 3 are a column, whose exchange comes behind the two of rows; then all have one.
  InExchange column(grouped_job(), 2);
  InExchange all(grouped_job(), 3);
  const Bytes of_column = column.frame(3, 0);
  const Bytes of_all = all.frame(3, 0);
  CHECK(parse_frame(of_column)->header.bucket != parse_frame(of_all)->header.bucket);
  show(column, of_all);
  show(all, of_column);
}

TEST_CASE("nodes with other lists refuse each other, and say so") {
  for (const Grouped& other : {Grouped{.name = "other"}, Grouped{.elements = kElements + 1}}) {
    ProgramJob job = grouped_job();
    const ProgramJob same = job;
    job.make = [&](const ProgramSetup& setup) {
      return std::make_unique<ProgramAlgorithm>(setup,
                                                setup.rank == 4 ? BuildProgram(other) : same.build);
    };
    const ProgramRun run = ProgramRunner(job).run("eager");
    CHECK(run.statuses[0].fault() == Fault::unexpected);
    CAPTURE(run.statuses[0].message());
    CHECK(run.statuses[0].message().find("another list of stages") != std::string::npos);
  }
}

TEST_CASE("a fault names the stage in which it came up") {
  const ProgramRun failed = ProgramRunner(grouped_job({.fails = true})).run("eager");
  CHECK(failed.statuses[0].fault() == Fault::non_finite);
  CHECK(failed.statuses[0].message().find("stage share") != std::string::npos);
  const auto huge = [](Rank, Round, std::span<const float>, std::span<float> g) {
    std::ranges::fill(g, std::numeric_limits<float>::max());
  };
  const ProgramRun run = ProgramRunner(grouped_job(), huge).run("eager");
  CHECK(run.statuses[0].fault() == Fault::non_finite);
  CHECK(run.statuses[0].message().find("stage sum") != std::string::npos);
}

TEST_CASE("a gradient that is not finite is refused, and another one taken") {
  ProgramRunner runner(
      {.nodes = 1, .grid = "row=1,column=1", .dimension = kElements, .build = Grouped()});
  const auto node = runner.algorithm(0);
  node->begin_round();
  std::vector<float> g(kElements, 1);
  g[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(node->take_gradient(g).fault() == Fault::non_finite);
  g[3] = 1;
  CHECK(node->take_gradient(g).ok());
  CHECK(node->idle());
  CHECK(node->round() == 1);
}

TEST_CASE("after the fault of a stage a node takes no other gradient, and says why") {
  ProgramRunner runner({.nodes = 1,
                        .grid = "row=1,column=1",
                        .dimension = kElements,
                        .build = Grouped{.fails = true}});
  const auto node = runner.algorithm(0);
  node->begin_round();
  const std::vector<float> g(kElements, 1);
  const Status first = node->take_gradient(g);
  CHECK(first.message().find("stage share") != std::string::npos);
  CHECK(node->accepts_gradient());
  CHECK(node->take_gradient(g).message() == first.message());
  Exchange exchange;
  const auto more = node->next_exchange(exchange);
  REQUIRE(more.ok());
  CHECK(!*more);
}

TEST_CASE("work behind exchanges takes its time in the simulator") {
  CAPTURE(kSeed);
  ProgramJob job = grouped_job({.flops = 3e6});
  const ProgramRun free = ProgramRunner(job).run("simulator");
  job.flops_per_second = 1e9;
  const ProgramRun paid = ProgramRunner(job).run("simulator");
  CHECK(free.models == paid.models);
  for (std::size_t i = 0; i < 6; ++i) {
    // Three stages of 3 ms behind exchanges in each of three rounds.
    CHECK(paid.report.nodes[i].compute - free.report.nodes[i].compute == 3 * 3 * 3'000'000);
  }
}

TEST_CASE("a run that goes on from a checkpoint gives the bits of one that did not stop") {
  CAPTURE(kSeed);
  const auto input = [](Rank rank, Round round, std::span<const float>, std::span<float> g) {
    normal_input(kSeed, rank, round, g);
  };
  ProgramRunner whole(grouped_job());
  ProgramRunner halves(grouped_job());
  ProgramRunner resumed(grouped_job());
  LockstepDriver uninterrupted;
  LockstepDriver first;
  LockstepDriver second;
  for (Rank rank = 0; rank < 6; ++rank) {
    uninterrupted.add(whole.algorithm(rank));
    first.add(halves.algorithm(rank));
    second.add(resumed.algorithm(rank));
  }
  REQUIRE(uninterrupted.run(4, input).ok());
  REQUIRE(first.run(2, input).ok());
  for (std::size_t i = 0; i < 6; ++i) {
    ByteBuffer state;
    first.node(i).save(state);
    ByteReader reader(state.bytes());
    REQUIRE(second.node(i).load(reader).ok());
    CHECK(reader.finished());
    const auto from = first.node(i).parameters();
    const auto to = second.node(i).parameters();
    std::memcpy(const_cast<float*>(to.data()), from.data(), from.size_bytes());
  }
  REQUIRE(second.run(2, input).ok());
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(same_bits(second.node(i).parameters(), uninterrupted.node(i).parameters()));
  }
}

TEST_CASE("a checkpoint of another list is refused") {
  ProgramRunner runner(grouped_job());
  ByteBuffer state;
  runner.algorithm(2)->save(state);
  ProgramRunner other(grouped_job({.name = "other"}));
  ByteReader reader(state.bytes());
  const Status status = other.algorithm(2)->load(reader);
  CHECK(status.fault() == Fault::malformed);
  CHECK(status.message().find("another list of stages") != std::string::npos);
}

TEST_CASE("lists that a round cannot hold are refused") {
  ProgramJob job{.nodes = 200, .grid = "all=200", .dimension = 1, .build = {}};
  const auto refused = [&](const BuildProgram& build) {
    job.build = build;
    try {
      ProgramRunner(job).algorithm(0);
    } catch (const Error& error) {
      CHECK(error.field() == "stages");
      return std::string(error.what());
    }
    return std::string();
  };
  const auto rings = [](int count) {
    return [count](const ProgramNode& node) {
      auto program = std::make_unique<ListProgram>();
      for (int i = 0; i < count; ++i) {
        program->collectives.push_back(
            make_all_reduce(node.everyone(), {.elements = 1, .form = CollectiveForm::ring}));
        program->list.push_back({"ring", {}, program->collectives.back().get(), 0});
      }
      return program;
    };
  };
  CHECK(refused(rings(164)).empty());
  CHECK(refused(rings(165)).find("phases") != std::string::npos);
  CHECK(refused([](const ProgramNode& node) {
          auto program = std::make_unique<ListProgram>();
          program->collectives.push_back(make_all_reduce(node.everyone(), {.elements = 1}));
          program->list = {{"a", {}, program->collectives[0].get(), 0},
                           {"b", {}, program->collectives[0].get(), 0}};
          return program;
        }).find("each stage") != std::string::npos);
}

TEST_CASE("a stage that does not begin its collective ends the round, and is named") {
  /// Begins its sum at node 0 alone.
  class Forgets final : public Program {
   public:
    explicit Forgets(const ProgramNode& node)
        : sum_(make_all_reduce(node.everyone(), {.elements = kElements})), values_(kElements) {
      stages_ = {{"forgotten",
                  [this, first = node.rank() == 0](const RoundInput&) {
                    if (first) {
                      sum_->begin(values_);
                    }
                    return Status();
                  },
                  sum_.get(), 0}};
    }
    std::span<const ProgramStage> stages() const override { return stages_; }

   private:
    std::unique_ptr<VectorCollective> sum_;
    std::vector<float> values_;
    std::vector<ProgramStage> stages_;
  };
  ProgramRunner runner(
      {.nodes = 2, .grid = "all=2", .dimension = kElements, .build = [](const ProgramNode& node) {
         return std::make_unique<Forgets>(node);
       }});
  const auto node = runner.algorithm(1);
  node->begin_round();
  const Status status = node->take_gradient(std::vector<float>(kElements));
  CHECK(status.fault() == Fault::unexpected);
  CHECK(status.message().find("stage forgotten") != std::string::npos);
  CHECK(status.message().find("has not begun its collective") != std::string::npos);
}

TEST_CASE("an optional collective is left alone in rounds in which all do so") {
  CAPTURE(kSeed);
  /// Sums what drivers hand over in every second round.
  class Now final : public Program {
   public:
    explicit Now(const ProgramNode& node)
        : node_(node), sum_(make_all_reduce(node.everyone(), {.elements = kElements})) {
      stages_ = {{"sum",
                  [this](const RoundInput& in) {
                    v_.assign(in.gradient.begin(), in.gradient.end());
                    if (in.round % 2 == 0) {
                      sum_->begin(v_);
                    }
                    return Status();
                  },
                  sum_.get(), 0, true},
                 {"note",
                  [this](const RoundInput&) {
                    host_ops().axpy(1, v_, node_.parameters());
                    return Status();
                  },
                  nullptr, 0}};
    }
    std::span<const ProgramStage> stages() const override { return stages_; }

   private:
    ProgramNode node_;
    std::unique_ptr<VectorCollective> sum_;
    std::vector<float> v_;
    std::vector<ProgramStage> stages_;
  };
  ProgramJob job{.nodes = 2, .grid = "all=2", .dimension = kElements, .rounds = 3, .build = {}};
  job.build = [](const ProgramNode& node) { return std::make_unique<Now>(node); };
  const auto ranks = [](Rank rank, Round, std::span<const float>, std::span<float> g) {
    std::ranges::fill(g, static_cast<float>(rank + 1));
  };
  for (const std::string& driver : drivers()) {
    CAPTURE(driver);
    const ProgramRun run = ProgramRunner(job, ranks).run(driver);
    REQUIRE(run.ok());
    CHECK(run.models[0] == std::vector<float>(kElements, 3 + 1 + 3));
    CHECK(run.models[1] == std::vector<float>(kElements, 3 + 2 + 3));
    CHECK(run.traffic.at({0, 1}).frames == 2 * 2);
  }
}

}  // namespace sotto::test::program_test
