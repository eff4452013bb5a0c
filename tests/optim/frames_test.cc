// Frames that are not due, or that break a rule, change nothing: the right ones still complete the
// round, and the models come out as if nothing had happened. For every algorithm.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::frames_test {

namespace {

/// A copy of the frame with another header or payload, and a right checksum.
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

  Status complete(const Exchange& exchange) override {
    OtherFrames frames(exchange);
    for (edge_ = 0; edge_ < frames.count(); ++edge_) {
      expect_foreign(frames);
      expect_damaged(frames);
      frames.show_right(edge_);
    }
    expect_undue(frames.exchange());
    Status status = inner().complete(frames.exchange());
    REQUIRE_MESSAGE(status.ok(), status.message());
    const Status again = inner().complete(frames.exchange());
    CHECK(again.fault() == Fault::unexpected);
    CHECK(again.message().find("no such exchange is under way") != std::string::npos);
    return status;
  }

  std::uint64_t expected_bad() const { return expected_bad_; }

 private:
  void expect_refused(Fault fault, OtherFrames& frames, Bytes frame, std::string_view why) {
    frames.show(edge_, std::move(frame));
    const Status status = inner().complete(frames.exchange());
    CAPTURE(status.message());
    CAPTURE(why);
    CHECK(status.fault() == fault);
    CHECK(status.message().find(why) != std::string::npos);
    CHECK(names(status, frames.from(edge_)));
    CHECK(inner().counters().bad_frames == ++expected_bad_);
  }

  /// An exchange that is not under way, or lacks a frame, is no exchange.
  void expect_undue(const Exchange& right) {
    Exchange other = right;
    ++other.tag.round;
    CHECK(inner().complete(other).fault() == Fault::unexpected);
    if (!right.receives.empty()) {
      other = right;
      other.receives.pop_back();
      CHECK(inner().complete(other).fault() == Fault::unexpected);
    }
  }

  void expect_foreign(OtherFrames& frames) {
    const Bytes right = frames.right(edge_);
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
      expect_refused(Fault::unexpected, frames,
                     resealed(right, [&](FrameHeader& h, Bytes&) { wrong.change(h); }),
                     wrong.field);
    }
  }

  void expect_damaged(OtherFrames& frames) {
    const Bytes right = frames.right(edge_);
    expect_refused(Fault::malformed, frames, Bytes(1), "too few");
    expect_refused(Fault::malformed, frames, {right.begin(), right.end() - 1}, "");
    Bytes damaged = right;
    damaged.back() ^= std::byte{1};
    expect_refused(Fault::malformed, frames, damaged, "checksum");
    expect_refused(Fault::malformed, frames, Bytes(1U << 20U), "fit");
  }

  std::size_t edge_ = 0;
  std::uint64_t expected_bad_ = 0;
};

/// Gives its algorithm a well-sealed frame with a bad payload in place of every right one, until
/// the algorithm has refused it.
class Poisoned final : public ForwardingAlgorithm {
 public:
  Poisoned(std::unique_ptr<Algorithm> inner, std::function<void(Bytes&)> poison)
      : ForwardingAlgorithm(std::move(inner)), poison_(std::move(poison)) {}

  Status complete(const Exchange& exchange) override {
    OtherFrames frames(exchange);
    for (std::size_t edge = 0; edge < frames.count(); ++edge) {
      frames.show(edge, resealed(frames.right(edge),
                                 [this](FrameHeader&, Bytes& payload) { poison_(payload); }));
    }
    for (std::size_t edge = 0; edge < frames.count(); ++edge) {
      const Status refused = inner().complete(frames.exchange());
      REQUIRE_FALSE(refused.ok());
      CAPTURE(refused.message());
      CHECK(names(refused, frames.from(edge)));
      frames.show_right(edge);
    }
    return inner().complete(frames.exchange());
  }

 private:
  std::function<void(Bytes&)> poison_;
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

TEST_CASE("foreign, damaged and undue frames are refused, counted, and change nothing") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const std::string topology : {"ring", "matching:5"}) {
      if (topology != "ring" && !info.takes_changing_graphs()) {
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
    if (info.robust) {
      continue;  // does without: robust_gossip_test.cc
    }
    CAPTURE(info.name);
    for (const std::function<void(Bytes&)>& poison :
         {std::function<void(Bytes&)>(cut), std::function<void(Bytes&)>(grown),
          std::function<void(Bytes&)>(emptied), std::function<void(Bytes&)>(not_a_number)}) {
      for (const std::string topology : {"complete", "matching:5"}) {
        if (topology != "complete" && !info.takes_changing_graphs()) {
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
    node.begin_round();
    if (!*node.next_exchange(exchange)) {
      const std::vector<float> gradient(64, 1.0F);
      REQUIRE(node.take_gradient(gradient).ok());
      REQUIRE(*node.next_exchange(exchange));
    }
    const Status done = node.complete(exchange);
    CHECK(done.fault() == Fault::unexpected);
    std::string expected = "frames from ";
    for (const Receive& receive : exchange.receives) {
      expected += (receive.from == exchange.receives.front().from ? "" : ", ") +
                  std::to_string(receive.from);
    }
    CHECK(done.message().find(expected) != std::string::npos);
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
      driver.add(make_algorithm(spec_of(options), node_setup(options, rank, x[rank], topology)));
    }
    const Status status = driver.run(1, Quadratic(3, 64, 5));
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message().find("node 0, round 0: frame from node 1") == 0);
    CHECK(status.message().find("continues another model") != std::string::npos);
  }
}

}  // namespace sotto::test::frames_test
