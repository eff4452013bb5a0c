#include <sotto/groups/keyed_link.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>
#include <sotto/compress/registry.h>
#include <sotto/groups/all_to_all.h>
#include <sotto/groups/halo.h>
#include <sotto/groups/program.h>
#include <sotto/groups/vector_collective.h>

#include "in_exchange.h"

namespace sotto::test::keyed_link_test {

namespace {

constexpr std::uint64_t kSeed = 2'206;
constexpr std::size_t kWide = 24;
constexpr std::size_t kRows = 5;
constexpr int kBatches = 2;
constexpr std::size_t kKeys = 40;

/// A link between two members, by which rows go and come back doubled.
struct LinkCase {
  int nodes = 2;
  int from = 0;
  int to = 1;
  std::string compressor = "quant:4";
  std::string first = "quant:8";
  std::string back = "quant:8";
  std::size_t keys = kKeys;
  float drift = 0.1F;             ///< of a row from round to round
  std::uint64_t pool = kKeys;     ///< keys that are drawn from
  std::uint64_t receiver_adds{};  ///< to the receiver's keys
  int batches = kBatches;
  KeyedForm memory = KeyedForm::fp32;

  KeyedLinkOptions options() const {
    return {.from = from,
            .to = to,
            .width = kWide,
            .rows = kRows,
            .batches = batches,
            .keys = keys,
            .compressor = compressor,
            .first = first,
            .gradient_compressor = back,
            .memory = memory};
  }
};

/// Sends rows of keys that recur, and adds up at both ends what comes.
class ThereAndDoubled final : public Program {
 public:
  ThereAndDoubled(const ProgramNode& node, const LinkCase& chosen)
      : node_(node), case_(chosen), link_(node.everyone(), chosen.options()) {
    for (int batch = 0; batch < chosen.batches; ++batch) {
      stages_.push_back({"there", [this, batch](const RoundInput& in) { return go(batch, in); },
                         &link_.carrying(batch), 0});
    }
    for (int batch = 0; batch < chosen.batches; ++batch) {
      stages_.push_back({"back", [this, batch](const RoundInput&) { return turn(batch); },
                         &link_.returning(batch), 0});
    }
    stages_.push_back({"end", [this](const RoundInput&) { return end(); }, nullptr, 0});
  }

  std::span<const ProgramStage> stages() const override { return stages_; }
  KeyedLink& link() { return link_; }
  /// What the last batch of the last round had.
  const std::vector<float>& rows() const { return rows_; }
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  /// Batches so far, by how many rows were new and known.
  const std::vector<std::pair<std::size_t, std::size_t>>& history() const { return history_; }

 private:
  Status go(int batch, const RoundInput& in) {
    RandomStream stream({.seed = kSeed,
                         .round = in.round,
                         .purpose = Purpose::test,
                         .bucket = static_cast<std::uint32_t>(batch)});
    keys_.clear();
    for (std::uint64_t count = stream.below(kRows + 1); keys_.size() < count;) {
      const std::uint64_t key = stream.below(case_.pool) + (std::uint64_t{1} << 40U);
      if (std::ranges::find(keys_, key) == keys_.end()) {
        keys_.push_back(key);
      }
    }
    std::size_t known = 0;
    for (const std::uint64_t key : keys_) {
      known += link_.remembered(key).empty() ? 0U : 1U;
    }
    history_.emplace_back(keys_.size() - known, known);
    if (link_.receives()) {
      for (std::uint64_t& key : keys_) {
        key += case_.receiver_adds;
      }
      return link_.receive(batch, keys_);
    }
    return link_.sends() ? send(batch, in.round) : Status();
  }
  Status send(int batch, Round round) {
    rows_.resize(keys_.size() * kWide);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      RandomStream base({.seed = keys_[i], .purpose = Purpose::test});
      RandomStream change({.seed = keys_[i], .round = round, .purpose = Purpose::test});
      for (float& value : std::span(rows_).subspan(i * kWide, kWide)) {
        value =
            static_cast<float>(base.normal()) + case_.drift * static_cast<float>(change.normal());
      }
    }
    return link_.send(batch, keys_, rows_);
  }
  Status turn(int batch) {
    if (link_.sends()) {
      link_.receive_gradient(batch);
    } else if (link_.receives()) {
      doubled_.assign(link_.rows(batch).begin(), link_.rows(batch).end());
      note(doubled_);
      host_ops().scale(2, doubled_);
      link_.send_gradient(batch, doubled_);
    }
    return {};
  }
  Status end() {
    for (int batch = 0; link_.sends() && batch < case_.batches; ++batch) {
      note(link_.gradient(batch));
    }
    return {};
  }
  void note(std::span<const float> values) {
    host_ops().axpy(1, values, node_.parameters().first(values.size()));
  }

  ProgramNode node_;
  LinkCase case_;
  KeyedLink link_;
  std::vector<ProgramStage> stages_;
  std::vector<std::uint64_t> keys_;
  std::vector<float> rows_;
  std::vector<float> doubled_;
  std::vector<std::pair<std::size_t, std::size_t>> history_;
};

using Programs = std::vector<ThereAndDoubled*>;

ProgramJob link_job(const LinkCase& chosen, Programs* programs = nullptr) {
  ProgramJob job{.nodes = chosen.nodes,
                 .grid = "stage=" + std::to_string(chosen.nodes),
                 .dimension = kRows * kWide,
                 .rounds = 6,
                 .seed = kSeed,
                 .build = {}};
  job.build = [chosen, programs](const ProgramNode& node) {
    auto program = std::make_unique<ThereAndDoubled>(node, chosen);
    if (programs != nullptr) {
      programs->push_back(program.get());
    }
    return program;
  };
  return job;
}

void no_input(Rank, Round, std::span<const float>, std::span<float> g) {
  std::ranges::fill(g, 0.0F);
}

/// All nodes of a case, in lock step.
struct LinkRun {
  explicit LinkRun(const LinkCase& chosen) : runner(link_job(chosen, &programs)) {
    for (Rank rank = 0; rank < chosen.nodes; ++rank) {
      driver.add(runner.algorithm(rank));
    }
  }
  KeyedLink& link(int rank) { return programs[static_cast<std::size_t>(rank)]->link(); }

  Programs programs;
  ProgramRunner runner;
  LockstepDriver driver;
};

std::string refused_field(const std::function<void(const ProgramNode&)>& make, int nodes = 2) {
  ProgramJob job{.nodes = nodes,
                 .grid = "stage=" + std::to_string(nodes),
                 .dimension = 4,
                 .build = [&](const ProgramNode& node) {
                   make(node);
                   return std::make_unique<ListProgram>();
                 }};
  try {
    ProgramRunner(job).algorithm(0);
  } catch (const Error& error) {
    return error.field();
  }
  return {};
}

}  // namespace

TEST_CASE("a keyed link gives the same bits in every driver, and carries what it said") {
  CAPTURE(kSeed);
  const std::array cases = {LinkCase{},
                            LinkCase{.compressor = "none"},
                            LinkCase{.compressor = "quant:2", .first = "none", .back = "none"},
                            LinkCase{.nodes = 3, .from = 2, .to = 0, .compressor = "sign"},
                            LinkCase{.nodes = 4, .from = 1, .to = 2, .compressor = "quant:3"},
                            LinkCase{.compressor = "quant:3", .memory = KeyedForm::fp16}};
  for (const LinkCase& chosen : cases) {
    CAPTURE(chosen.compressor);
    CAPTURE(chosen.nodes);
    std::vector<std::vector<float>> first;
    for (const std::string& driver : drivers()) {
      CAPTURE(driver);
      const ProgramRun run = ProgramRunner(link_job(chosen)).run(driver);
      for (const Status& status : run.statuses) {
        CAPTURE(status.message());
        REQUIRE(status.ok());
      }
      first = first.empty() ? run.models : first;
      CHECK(run.models == first);
      // The plan of the bytes is that of another run, in lock step.
      LinkRun plan(chosen);
      REQUIRE(plan.driver.run(6, no_input).ok());
      EdgeVolume there;
      EdgeVolume back;
      const auto sender = static_cast<std::size_t>(chosen.from);
      for (const auto& [fresh, known] : plan.programs[sender]->history()) {
        there += plan.link(0).volume_there(fresh, known);
        back += plan.link(0).volume_back(fresh + known);
      }
      for (const auto& [edge, traffic] : run.traffic) {
        const bool forward = edge.first == chosen.from && edge.second == chosen.to;
        const bool backward = edge.first == chosen.to && edge.second == chosen.from;
        const EdgeVolume due = forward ? there : backward ? back : EdgeVolume{};
        CHECK(traffic.frames == due.frames);
        CHECK(traffic.bytes == due.bytes);
      }
      CHECK(there.frames == 12);
      CHECK(run.traffic.at({chosen.from, chosen.to}).bytes == there.bytes);
      CHECK(run.traffic.at({chosen.to, chosen.from}).bytes == back.bytes);
    }
  }
}

TEST_CASE("before it runs a link says the most that it carries") {
  LinkRun run({.nodes = 3, .from = 0, .to = 2});
  const auto volume = [&](std::size_t at) {
    return dynamic_cast<const ProgramAlgorithm&>(run.driver.node(at)).volume();
  };
  const EdgeVolume there = run.link(0).volume_there(kRows, 0);
  const EdgeVolume back = run.link(0).volume_back(kRows);
  CHECK(there.bytes == 64 + 8 + kRows * (1 + 4 + 8 + kWide));
  CHECK(back.bytes == 64 + kRows * (1 + 4 + 8 + kWide));
  CHECK(run.link(0).volume_there(2, 3).bytes ==
        64 + 8 + 2 * (1 + 4 + 8 + kWide) + 3 * (1 + 4 + 8 + kWide / 2));
  CHECK(volume(0).sent.at(2).bytes == kBatches * there.bytes);
  CHECK(volume(0).received.at(2).bytes == kBatches * back.bytes);
  CHECK(volume(2).sent.at(0) == volume(0).received.at(2));
  CHECK(volume(1) == ExchangeVolume{});
}

TEST_CASE("without compression rows arrive to the bit, and nothing is remembered") {
  CAPTURE(kSeed);
  LinkRun run({.compressor = "none", .back = "none", .keys = 1});
  for (int round = 0; round < 8; ++round) {
    REQUIRE(run.driver.run(1, no_input).ok());
    CHECK(same_bits(run.link(1).rows(kBatches - 1), run.programs[0]->rows()));
  }
  CHECK(run.link(0).counts().first == 0);
  CHECK(run.link(0).counts().again == run.link(1).counts().again);
  CHECK(run.link(0).remembered(run.programs[0]->keys()[0]).empty());
}

TEST_CASE("what both ends hold of a row that stays goes to it by the contract's factor") {
  CAPTURE(kSeed);
  for (const char* compressor : {"quant:2", "quant:3", "quant:4", "sign"}) {
    CAPTURE(compressor);
    // One row, which is always sent.
    const std::array<std::uint64_t, 1> keys = {7};
    std::vector<float> a(kWide);
    normal_input(kSeed, 0, 0, a);
    const double size = host_ops().dot(a, a);
    const double delta =
        make_compressor(compressor, ContractKind::contraction)->contract(kWide).delta;
    std::vector<double> errors;
    ProgramJob job{.nodes = 2, .grid = "stage=2", .dimension = 1, .seed = kSeed, .build = {}};
    std::vector<KeyedLink*> links;
    std::vector<std::unique_ptr<KeyedLink>> owned;
    job.build = [&](const ProgramNode& node) {
      owned.push_back(std::make_unique<KeyedLink>(
          node.everyone(),
          KeyedLinkOptions{
              .width = kWide, .keys = 1, .compressor = compressor, .first = compressor}));
      KeyedLink* const link = owned.back().get();
      links.push_back(link);
      auto program = std::make_unique<ListProgram>();
      program->list = {{"row",
                        [link, &keys, &a](const RoundInput&) {
                          return link->sends() ? link->send(0, keys, a) : link->receive(0, keys);
                        },
                        &link->carrying(0), 0}};
      return program;
    };
    ProgramRunner runner(job);
    LockstepDriver driver;
    driver.add(runner.algorithm(0));
    driver.add(runner.algorithm(1));
    double bound = size;
    for (int visit = 0; visit < 30; ++visit) {
      REQUIRE(driver.run(1, no_input).ok());
      const auto held = links[1]->rows(0);
      CHECK(same_bits(held, links[0]->remembered(7)));
      double error = 0;
      for (std::size_t k = 0; k < kWide; ++k) {
        error += std::pow(static_cast<double>(held[k] - a[k]), 2);
      }
      bound *= 1 - delta;
      CHECK(error <= bound + 1e-10 * size);
    }
  }
}

TEST_CASE("both ends hold the same bits, also where a run goes on from checkpoints") {
  CAPTURE(kSeed);
  LinkCase chosen{.nodes = 3, .from = 0, .to = 2, .compressor = "quant:3"};
  SUBCASE("in fp32") {}
  SUBCASE("in fp16") { chosen.memory = KeyedForm::fp16; }
  LinkRun whole(chosen);
  LinkRun first(chosen);
  LinkRun second(chosen);
  REQUIRE(whole.driver.run(9, no_input).ok());
  REQUIRE(first.driver.run(4, no_input).ok());
  for (std::size_t i = 0; i < 3; ++i) {
    ByteBuffer state;
    first.driver.node(i).save(state);
    ByteReader reader(state.bytes());
    REQUIRE(second.driver.node(i).load(reader).ok());
    CHECK(reader.finished());
  }
  REQUIRE(second.driver.run(5, no_input).ok());
  CHECK(second.link(0).digest() == whole.link(0).digest());
  CHECK(second.link(2).digest() == whole.link(0).digest());
  CHECK(whole.link(2).digest() == whole.link(0).digest());
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::uint64_t key = (std::uint64_t{1} << 40U) + i;
    CHECK(same_bits(whole.link(0).remembered(key), whole.link(2).remembered(key)));
    CHECK(same_bits(whole.link(0).remembered(key), second.link(0).remembered(key)));
    CHECK(same_bits(whole.link(0).remembered(key), second.link(2).remembered(key)));
  }
  CHECK(whole.link(1).remembered(std::uint64_t{1} << 40U).empty());
}

TEST_CASE("ends that have other keys or other memories refuse each other, and say so") {
  CAPTURE(kSeed);
  const auto said = [](LinkRun& run) {
    const Status status = run.driver.run(1, no_input);
    CHECK(status.fault() == Fault::unexpected);
    return status.message().find("other keys, or another memory") != std::string::npos;
  };
  LinkRun other_keys({.receiver_adds = 1});
  Status status;
  while (status.ok()) {
    status = other_keys.driver.run(1, no_input);
  }
  CHECK(status.message().find("other keys, or another memory") != std::string::npos);
  LinkRun one_forgets({});
  REQUIRE(one_forgets.driver.run(4, no_input).ok());
  one_forgets.link(1).forget(std::array{std::uint64_t{3}});
  CHECK(said(one_forgets));
  // A checkpoint of another round.
  LinkRun older({});
  REQUIRE(older.driver.run(3, no_input).ok());
  ByteBuffer state;
  older.link(0).save(state);
  REQUIRE(older.driver.run(2, no_input).ok());
  ByteReader reader(state.bytes());
  REQUIRE(older.link(0).load(reader).ok());
  CHECK(said(older));
}

TEST_CASE("batches that are under way take the room of their new keys") {
  LinkRun run({.keys = 6});
  const std::vector<float> rows(4 * kWide);
  REQUIRE(run.link(0).send(0, std::array<std::uint64_t, 4>{101, 102, 103, 104}, rows).ok());
  const Status status = run.link(0).send(1, std::array<std::uint64_t, 4>{105, 106, 107, 108}, rows);
  CHECK(status.fault() == Fault::unexpected);
  CHECK(status.message().find("finds no room among 6 keys") != std::string::npos);
}

TEST_CASE("a new key in several batches under way takes its room once") {
  LinkRun run({.keys = 6, .batches = 3});
  const std::vector<float> rows(4 * kWide);
  for (const int rank : {0, 1}) {
    KeyedLink& link = run.link(rank);
    const auto begin = [&](int batch, const std::array<std::uint64_t, 4>& keys) {
      return link.sends() ? link.send(batch, keys, rows) : link.receive(batch, keys);
    };
    CHECK(begin(0, {101, 102, 103, 104}).ok());
    CHECK(begin(1, {104, 103, 105, 101}).ok());
    CHECK(begin(2, {105, 101, 106, 102}).ok());
    const Status status = begin(2, {105, 106, 107, 101});
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message().find("the row under key 107 finds no room") != std::string::npos);
  }
}

TEST_CASE("a memory that is full refuses a row by name, and has room for it once both forget") {
  CAPTURE(kSeed);
  LinkRun run({.keys = 6, .pool = 12});
  Status status;
  int rounds = 0;
  while (status.ok() && rounds < 40) {
    status = run.driver.run(1, no_input);
    ++rounds;
  }
  CHECK(status.fault() == Fault::unexpected);
  CHECK(status.message().find("finds no room among 6 keys") != std::string::npos);
  CHECK(status.message().find("stage there") != std::string::npos);
  LinkRun forgetful({.keys = 10, .pool = 12});
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < 12; ++i) {
    all.push_back((std::uint64_t{1} << 40U) + i);
  }
  for (int round = 0; round < 40; ++round) {
    REQUIRE(forgetful.driver.run(1, no_input).ok());
    forgetful.link(0).forget(all);
    forgetful.link(1).forget(all);
  }
  CHECK(forgetful.link(0).remembered(all[0]).empty());
}

TEST_CASE("a key that stands twice in a batch is refused by name") {
  LinkRun run({});
  const std::array<std::uint64_t, 3> twice = {4, 9, 4};
  const std::vector<float> rows(3 * kWide);
  const Status sent = run.link(0).send(0, twice, rows);
  CHECK(sent.fault() == Fault::unexpected);
  CHECK(sent.message().find("the key 4 stands twice") != std::string::npos);
  CHECK(run.link(1).receive(0, twice).message().find("the key 4") != std::string::npos);
}

TEST_CASE("rows that overflow are faults, and change nothing at the other end") {
  for (const bool at_once : {true, false}) {
    CAPTURE(at_once);
    LinkRun run({.drift = at_once ? std::numeric_limits<float>::infinity() : 3e38F});
    Status status;
    for (int round = 0; status.ok() && round < 40; ++round) {
      status = run.driver.run(1, no_input);
    }
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find("stage there") != std::string::npos);
  }
}

TEST_CASE("a batch of rows is a digest and its rows, byte by byte") {
  ProgramJob job{.nodes = 2, .grid = "stage=2", .dimension = 1, .seed = kSeed, .build = {}};
  const std::array<std::uint64_t, 1> keys = {7};
  const std::vector<float> row = {1, -2};
  std::vector<std::unique_ptr<KeyedLink>> links;
  job.build = [&](const ProgramNode& node) {
    links.push_back(std::make_unique<KeyedLink>(node.everyone(),
                                                KeyedLinkOptions{.width = 2, .first = "none"}));
    KeyedLink* const link = links.back().get();
    auto program = std::make_unique<ListProgram>();
    program->list = {{"row",
                      [link, &keys, &row](const RoundInput&) {
                        return link->sends() ? link->send(0, keys, row) : link->receive(0, keys);
                      },
                      &link->carrying(0), 0}};
    return program;
  };
  const InExchange nodes(job);
  const Bytes payload = payload_of(nodes.frame(1, 0));
  REQUIRE(payload.size() == 8 + 8);
  // XXH3-64 of the key's bytes, with the seed 0 of an empty memory.
  const std::uint64_t digest = xxh3(std::as_bytes(std::span(keys)));
  CHECK(std::memcmp(payload.data(), &digest, 8) == 0);
  CHECK(std::memcmp(payload.data() + 8, row.data(), 8) == 0);
  const FrameHeader header = parse_frame(nodes.frame(1, 0))->header;
  CHECK(header.elements == 2);
  CHECK(header.bucket == 4096);
}

TEST_CASE("any bytes in place of a batch are refused and counted, and the right ones then taken") {
  CAPTURE(kSeed);
  for (const LinkCase& chosen : {LinkCase{}, LinkCase{.compressor = "none", .back = "none"}}) {
    for (std::size_t number : {0U, 2U}) {  // there, and back
      const std::size_t reader = number == 0 ? 1 : 0;
      for (int i = 0; i < 250; ++i) {
        CAPTURE(i);
        InExchange open(link_job(chosen), number);
        RandomStream stream(
            {.seed = kSeed, .round = static_cast<Round>(i), .purpose = Purpose::test});
        OtherFrames frames(open.exchanges[reader]);
        const Bytes right = payload_of(frames.right(0));
        Bytes payload = right;
        const std::uint64_t kind = stream.below(3);
        if (kind == 0) {
          payload.resize(stream.below(payload.size() + 1));
        } else if (kind == 1) {
          payload.resize(payload.size() + 1 + stream.below(40), std::byte{0xFF});
        }
        for (std::uint64_t flips = stream.below(4); flips > 0 && !payload.empty(); --flips) {
          payload[stream.below(payload.size())] = static_cast<std::byte>(stream.below(256));
        }
        const auto elements = parse_frame(frames.right(0))->header.elements;
        frames.show(0, with_payload(frames.right(0), payload,
                                    stream.below(3) == 0 ? stream.next_u64() : elements));
        const Status status = open.nodes[reader]->complete(frames.exchange());
        CAPTURE(status.message());
        if (!status.ok()) {
          CHECK(status.message().find("from node " + std::to_string(1 - reader)) !=
                std::string::npos);
          CHECK(open.nodes[reader]->counters().bad_frames == 1);
          frames.show_right(0);
          const Status after = open.nodes[reader]->complete(frames.exchange());
          CHECK_MESSAGE(after.ok(), after.message());
        } else {
          CHECK(payload.size() == right.size());
        }
      }
    }
  }
}

TEST_CASE("compressors that do not fit rows under keys, or other collectives, are refused") {
  const auto link = [](const KeyedLinkOptions& options) {
    return refused_field([&](const ProgramNode& node) { KeyedLink(node.everyone(), options); });
  };
  CHECK(link({.width = 64}).empty());
  CHECK(link({.width = 64, .compressor = "sign"}).empty());
  CHECK(link({.width = 64, .compressor = "quant:1"}) == "compressor");  // no contraction
  CHECK(link({.width = 64, .first = "quant:1"}) == "compressor");
  CHECK(link({.width = 64, .compressor = "nonsense"}) == "compressor");
  CHECK(link({.width = 64, .gradient_compressor = "quant:4"}) == "compressor");
  CHECK(link({.width = 64, .gradient_compressor = "sign"}) == "compressor");
  CHECK(link({.from = 2}) == "from");
  CHECK(link({.to = -1}) == "to");
  CHECK(link({.to = 0}) == "to");
  CHECK(link({.width = 0}) == "width");
  CHECK(link({.rows = 0}) == "rows");
  CHECK(link({.batches = 0}) == "batches");
  CHECK(link({.keys = 0}) == "keys");
  CHECK(link({.width = 64, .keys = 5, .memory_limit = 5 * 64 * 4}).empty());
  CHECK(link({.width = 64, .keys = 6, .memory_limit = 5 * 64 * 4}) == "keys");
  const Encoding keyed{
      .data = Carried::activation, .memory = ErrorMemory::keyed, .compressor = "quant:4"};
  CHECK(refused_field([&](const ProgramNode& node) {
          AllToAll(node.everyone(), {.width = 8}, keyed);
        }) == "compressor");
  CHECK(refused_field([&](const ProgramNode& node) {
          Halo(node.everyone(), {}, 8, keyed, Halo::Merge::add);
        }) == "compressor");
  CHECK(refused_field([&](const ProgramNode& node) {
          Halo(node.everyone(), {}, 8, keyed, Halo::Merge::replace);
        }).empty());
  CHECK(refused_field([&](const ProgramNode& node) {
          make_broadcast(node.everyone(), {.elements = 8, .encoding = keyed}, 0);
        }) == "compressor");
  CHECK(refused_field([&](const ProgramNode& node) {
          KeyedLink(node.everyone(), {.width = 8});
          make_all_reduce(node.everyone(), {.elements = 8,
                                            .encoding = {.data = Carried::activation_gradient,
                                                         .memory = ErrorMemory::keyed,
                                                         .compressor = "quant:8"}});
        }) == "compressor");
}

TEST_CASE("a checkpoint that is none leaves a memory empty") {
  KeyedMemory memory(3, 4);
  const std::vector<float> row = {1, 2, 3};
  memory.put(5, row);
  memory.put(9, row);
  ByteBuffer state;
  memory.save(state);
  const auto loads = [&](std::vector<std::byte> bytes, std::size_t keys = 4) {
    KeyedMemory other(3, keys);
    other.put(1, row);
    ByteReader reader(bytes);
    const Status status = other.load(reader);
    CHECK(other.has(1) == false);
    CHECK(other.size() == (status.ok() ? 2U : 0U));
    CHECK((other.digest() == memory.digest()) == status.ok());
    return status.ok();
  };
  memory.set_digest(77);
  ByteBuffer right;
  memory.save(right);
  std::vector<std::byte> bytes(right.bytes().begin(), right.bytes().end());
  CHECK(loads(bytes));
  CHECK(!loads(bytes, 1));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    CHECK(!loads({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut)}));
  }
  std::vector<std::byte> twice = bytes;
  std::copy_n(bytes.begin() + 16, 8, twice.begin() + 24);
  CHECK(!loads(twice));
  std::vector<std::byte> huge = bytes;
  std::fill_n(huge.begin() + 8, 8, std::byte{0xFF});
  CHECK(!loads(huge));
}

TEST_CASE("a memory in fp16 holds rows rounded to the nearest, and a checkpoint has them") {
  KeyedMemory memory(3, 2, KeyedForm::fp16);
  const std::vector<float> row = {1.0F / 3, -70'000, 0.1F};
  std::vector<float> rounded = row;
  CHECK(memory.round(rounded) == 1);  // the one that fp16 has no room for
  CHECK(rounded == std::vector<float>{0.333251953125F, -65'504, 0.0999755859375F});
  memory.put(4, row);
  memory.put(6, rounded);
  CHECK(same_bits(memory.row(4), rounded));
  CHECK(same_bits(memory.row(6), rounded));
  ByteBuffer state;
  memory.save(state);
  KeyedMemory other(3, 2, KeyedForm::fp16);
  ByteReader reader(state.bytes());
  REQUIRE(other.load(reader).ok());
  CHECK(reader.finished());
  CHECK(same_bits(other.row(4), rounded));
  memory.forget(std::array<std::uint64_t, 1>{4});
  CHECK(same_bits(memory.row(6), rounded));
  // Half the bytes: twice as many keys below one limit, and both ends name the form.
  const auto field_of = [](KeyedForm form) {
    return refused_field([&](const ProgramNode& node) {
      (void)KeyedLink(node.everyone(),
                      {.width = 8, .keys = 10, .memory = form, .memory_limit = 200});
    });
  };
  CHECK(field_of(KeyedForm::fp32) == "keys");
  CHECK(field_of(KeyedForm::fp16).empty());
}

TEST_CASE("a memory forgets what it is told to, and keeps the rest") {
  KeyedMemory memory(1, 3);
  for (std::uint64_t key = 0; key < 3; ++key) {
    memory.put(key, std::array{static_cast<float>(key)});
  }
  memory.forget(std::array<std::uint64_t, 2>{0, 12});
  CHECK(memory.size() == 2);
  CHECK(!memory.has(0));
  CHECK(memory.row(2)[0] == 2);
  CHECK(memory.row(1)[0] == 1);
  memory.put(7, std::array{7.0F});
  CHECK(memory.row(7)[0] == 7);
  memory.forget(std::array<std::uint64_t, 3>{1, 2, 7});
  CHECK(memory.size() == 0);
}

}  // namespace sotto::test::keyed_link_test
