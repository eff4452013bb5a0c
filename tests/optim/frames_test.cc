// Frames that are not due, or that break a rule, change nothing: the right ones still complete the
// round, and the models come out as if nothing had happened. For every algorithm.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>
#include <sotto/optim/forwarding_algorithm.h>

#include "optim/cluster.h"

using namespace sotto;
using namespace sotto::test;

namespace {

using Bytes = std::vector<std::byte>;

/// The same frame with another header or payload, its checksum right.
Bytes resealed(std::span<const std::byte> frame,
               const std::function<void(FrameHeader&, Bytes& payload)>& change) {
  const auto view = parse_frame(frame);
  REQUIRE(view.ok());
  FrameHeader header = view->header;
  Bytes payload(view->payload.begin(), view->payload.end());
  change(header, payload);
  header.payload_bytes = payload.size();
  Bytes changed(kFrameHeaderBytes + payload.size());
  std::copy(payload.begin(), payload.end(), changed.begin() + kFrameHeaderBytes);
  seal_frame(header, changed);
  return changed;
}

bool names(const Status& status, Rank from) {
  return status.message().find("frame from node " + std::to_string(from)) != std::string::npos &&
         status.message().find("node ") == 0 &&
         status.message().find("round ") != std::string::npos;
}

/// Shows its algorithm every kind of bad frame around every right one.
class Disturbed final : public ForwardingAlgorithm {
 public:
  using ForwardingAlgorithm::ForwardingAlgorithm;

  Status frame_arrived(const ExchangeTag& tag, Rank from,
                       std::span<const std::byte> frame) override {
    tag_ = tag;
    const Bytes right(frame.begin(), frame.end());
    expect_foreign(from, right);
    expect_damaged(from, right);
    REQUIRE(inner().frame_arrived(tag, from, right).ok());
    expect_refused(Fault::unexpected, from, right, "here already");
    last_from_ = from;
    last_frame_ = right;
    return {};
  }

  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override {
    auto more = inner().exchange_done(tag, out);
    if (more.ok() && !*more) {
      expect_refused(Fault::unexpected, last_from_, last_frame_, "no exchange is under way");
    }
    return more;
  }

  std::uint64_t expected_bad() const { return expected_bad_; }

 private:
  void expect_refused(Fault fault, Rank from, std::span<const std::byte> frame,
                      std::string_view why) {
    const Status status = inner().frame_arrived(tag_, from, frame);
    CAPTURE(status.message());
    CAPTURE(why);
    CHECK(status.fault() == fault);
    CHECK(status.message().find(why) != std::string::npos);
    CHECK(names(status, from));
    CHECK(inner().counters().bad_frames == ++expected_bad_);
  }

  void expect_foreign(Rank from, const Bytes& right) {
    struct Case {
      std::string_view field;
      void (*change)(FrameHeader&);
    };
    for (const Case& wrong : {
             Case{"run id", [](FrameHeader& h) { ++h.run_id; }},
             Case{"algorithm id", [](FrameHeader& h) { h.algorithm = 999; }},
             Case{"compressor id", [](FrameHeader& h) { h.compressor = 999; }},
             Case{"round", [](FrameHeader& h) { ++h.round; }},
             Case{"round", [](FrameHeader& h) { --h.round; }},
             Case{"round", [](FrameHeader& h) { h.round += Round{1} << 32U; }},
             Case{"sender", [](FrameHeader& h) { h.sender += 1; }},
             Case{"settings", [](FrameHeader& h) { ++h.settings; }},
             Case{"settings", [](FrameHeader& h) { h.settings = ~std::uint32_t{0}; }},
             Case{"phase", [](FrameHeader& h) { ++h.phase; }},
             Case{"bucket", [](FrameHeader& h) { ++h.bucket; }},
             Case{"element count", [](FrameHeader& h) { ++h.elements; }},
             Case{"element count", [](FrameHeader& h) { h.elements = ~std::uint64_t{0}; }},
         }) {
      expect_refused(Fault::unexpected, from,
                     resealed(right, [&](FrameHeader& h, Bytes&) { wrong.change(h); }),
                     wrong.field);
    }
    const Rank stranger = 99;
    expect_refused(Fault::unexpected, stranger,
                   resealed(right, [](FrameHeader& h, Bytes&) { h.sender = stranger; }),
                   "nothing to send");
    expect_refused(Fault::unexpected, -1, right, "nothing to send");
  }

  void expect_damaged(Rank from, const Bytes& right) {
    expect_refused(Fault::malformed, from, {}, "too few");
    expect_refused(Fault::malformed, from, std::span(right).first(right.size() - 1), "");
    Bytes damaged = right;
    damaged.back() ^= std::byte{1};
    expect_refused(Fault::malformed, from, damaged, "checksum");
    expect_refused(Fault::malformed, from, Bytes(1U << 20U), "fit");
  }

  ExchangeTag tag_;
  Rank last_from_ = 0;
  Bytes last_frame_;
  std::uint64_t expected_bad_ = 0;
};

/// Gives its algorithm a well-sealed frame with a bad payload before every right one: the algorithm
/// may refuse it at once, or when the exchange is done.
class Poisoned final : public ForwardingAlgorithm {
 public:
  Poisoned(std::unique_ptr<Algorithm> inner, std::function<void(Bytes&)> poison)
      : ForwardingAlgorithm(std::move(inner)), poison_(std::move(poison)) {}

  Status frame_arrived(const ExchangeTag& tag, Rank from,
                       std::span<const std::byte> frame) override {
    Bytes right(frame.begin(), frame.end());
    const Bytes bad = resealed(frame, [this](FrameHeader&, Bytes& payload) { poison_(payload); });
    if (const Status status = inner().frame_arrived(tag, from, bad); !status) {
      CHECK(names(status, from));
      return inner().frame_arrived(tag, from, right);
    }
    held_.emplace_back(from, std::move(right));
    return {};
  }

  Result<bool> exchange_done(const ExchangeTag& tag, Exchange& out) override {
    for (const auto& [from, right] : held_) {
      const auto refused = inner().exchange_done(tag, out);
      REQUIRE_FALSE(refused.ok());
      CAPTURE(refused.status().message());
      CHECK(names(refused.status(), from));
      const Status status = inner().frame_arrived(tag, from, right);
      REQUIRE(status.ok());
    }
    held_.clear();
    return inner().exchange_done(tag, out);
  }

 private:
  std::function<void(Bytes&)> poison_;
  std::vector<std::pair<Rank, Bytes>> held_;
};

void check_unharmed(const ClusterOptions& options, const Wrap& wrap) {
  Cluster clean(options);
  Cluster disturbed(options, wrap);
  const Quadratic task(options.nodes, options.dimension, 5, 0.1);
  REQUIRE(clean.driver.run(4, task).ok());
  const Status status = disturbed.driver.run(4, task);
  CAPTURE(status.message());
  REQUIRE(status.ok());
  CHECK(clean.x == disturbed.x);
}

}  // namespace

TEST_CASE("foreign, damaged, undue and repeated frames are refused, counted, and change nothing") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const std::string topology : {"ring", "matching:5"}) {
      if (topology != "ring" && !info.time_varying) {
        continue;
      }
      CAPTURE(info.name);
      CAPTURE(topology);
      check_unharmed(
          {.algorithm = std::string(info.name), .topology = topology, .nodes = 4, .dimension = 21},
          [](auto inner) { return std::make_unique<Disturbed>(std::move(inner)); });
    }
  }
}

TEST_CASE("local steps are not harmed by bad frames either") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    check_unharmed({.algorithm = std::string(info.name),
                    .nodes = 4,
                    .dimension = 21,
                    .communication_interval = 2},
                   [](auto inner) { return std::make_unique<Disturbed>(std::move(inner)); });
  }
}

TEST_CASE("a payload that does not decode is refused by its sender's name and changes nothing") {
  const auto cut = [](Bytes& payload) { payload.pop_back(); };
  const auto grown = [](Bytes& payload) { payload.insert(payload.end(), 2, std::byte{0}); };
  const auto emptied = [](Bytes& payload) { payload.clear(); };
  const auto not_a_number = [](Bytes& payload) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(payload.data() + payload.size() - sizeof nan, &nan, sizeof nan);
  };
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.aggregation) {
      continue;  // does without: robust_gossip_test.cc
    }
    CAPTURE(info.name);
    for (const std::function<void(Bytes&)>& poison :
         {std::function<void(Bytes&)>(cut), std::function<void(Bytes&)>(grown),
          std::function<void(Bytes&)>(emptied), std::function<void(Bytes&)>(not_a_number)}) {
      for (const std::string topology : {"complete", "matching:5"}) {
        if (topology != "complete" && !info.time_varying) {
          continue;
        }
        CAPTURE(topology);
        check_unharmed(
            {.algorithm = std::string(info.name),
             .compressor = fitting("none", info),
             .topology = topology,
             .nodes = 4,
             .dimension = 21},
            [&](auto inner) { return std::make_unique<Poisoned>(std::move(inner), poison); });
      }
    }
  }
}

TEST_CASE("an exchange is not done while frames are missing, and says whose") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    Cluster cluster({.algorithm = std::string(info.name), .topology = "complete", .nodes = 4});
    Algorithm& node = cluster.driver.node(2);
    Exchange exchange;
    bool post = node.begin_round(exchange);
    if (!post) {
      const std::vector<float> gradient(64, 1.0F);
      REQUIRE(node.gradient_ready(gradient, exchange, &post).ok());
    }
    REQUIRE(post);
    const auto done = node.exchange_done(exchange.tag, exchange);
    CHECK(done.status().fault() == Fault::unexpected);
    std::string expected = "frames from ";
    for (const Receive& receive : exchange.receives) {
      expected += (receive.from == exchange.receives.front().from ? "" : ", ") +
                  std::to_string(receive.from);
    }
    CHECK(done.status().message().find(expected) != std::string::npos);
    CHECK_FALSE(node.idle());
  }
}

TEST_CASE("nodes that start from different models are told so by the first frames of DCD and ECD") {
  for (const std::string algorithm : {"dcd", "ecd"}) {
    CAPTURE(algorithm);
    ClusterOptions options{.algorithm = algorithm, .compressor = "none", .nodes = 3};
    const auto topology = make_topology("ring", 3);
    std::vector<std::vector<float>> x(3, std::vector<float>(64, 1.0F));
    x[1][63] = 1.0000001F;
    LockstepDriver driver;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      driver.add(make_algorithm(algorithm, node_setup(options, rank, x[rank], topology)));
    }
    const Status status = driver.run(1, Quadratic(3, 64, 5));
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message().find("node 0, round 0: frame from node 1") == 0);
    CHECK(status.message().find("continues another model") != std::string::npos);
  }
}
