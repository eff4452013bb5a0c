#include "groups.h"

#include <algorithm>
#include <memory>
#include <string>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/groups/all_to_all.h>
#include <sotto/groups/halo.h>
#include <sotto/groups/program.h>
#include <sotto/groups/vector_collective.h>

#include "optim/other_frames.h"

namespace sotto_fuzz {
namespace {

using sotto::check;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kWidth = 3;
constexpr sotto::RowRoom kRoom{.width = kWidth, .slots = 2, .capacity = 4};

/// One exchange of a kind.
class Rows final : public sotto::Program {
 public:
  Rows(const sotto::ProgramNode& node, std::uint8_t kind) : v_(64, 1.5F), to_(64) {
    const char* const compressor = kind % 2 == 0 ? "none" : "quant:8";
    const sotto::Encoding rows{.data = sotto::Carried::activation, .compressor = compressor};
    if (kind < 2) {
      auto made = std::make_unique<sotto::AllToAll>(node.everyone(), kRoom, rows);
      begin_ = [this, at = made.get()] { at->begin(counts_, std::span(v_).first(6 * kWidth)); };
      collective_ = std::move(made);
    } else if (kind < 4) {
      const std::vector<sotto::HaloEdge> edge = {{.position = 1 - node.rank(), .rows = {0, 2, 3}}};
      auto made = std::make_unique<sotto::Halo>(
          node.everyone(), sotto::HaloLists{.out = edge, .in = edge, .longest = 3}, kWidth, rows,
          sotto::Halo::Merge::add);
      begin_ = [this, at = made.get()] { at->begin(v_, to_); };
      collective_ = std::move(made);
    } else {
      auto made = sotto::make_all_reduce(node.everyone(), {.elements = v_.size()});
      begin_ = [this, at = made.get()] { at->begin(v_); };
      collective_ = std::move(made);
    }
    stages_ = {{"rows",
                [this](const sotto::RoundInput&) {
                  begin_();
                  return sotto::Status();
                },
                collective_.get(), 0}};
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }

 private:
  std::vector<float> v_;
  std::vector<float> to_;
  std::vector<std::uint16_t> counts_ = {1, 0, 2, 3};
  std::function<void()> begin_;
  std::unique_ptr<sotto::Collective> collective_;
  std::vector<sotto::ProgramStage> stages_;
};

/// Two nodes in their first exchange; what they send each other has come.
struct Pair {
  explicit Pair(std::uint8_t kind) : exchanges(2) {
    for (sotto::Rank rank = 0; rank < 2; ++rank) {
      nodes.push_back(std::make_unique<sotto::ProgramAlgorithm>(
          sotto::ProgramSetup{.rank = rank, .nodes = 2, .grid = "all=2", .parameters = x},
          [kind](const sotto::ProgramNode& node) { return std::make_unique<Rows>(node, kind); }));
      nodes.back()->begin_round();
      check(nodes.back()->take_gradient(g).ok(), "a program takes a gradient");
      const auto more = nodes.back()->next_exchange(exchanges[static_cast<std::size_t>(rank)]);
      check(more.ok() && *more, "its first stage has an exchange");
    }
    const auto frame = exchanges[1].sends.at(0).frame;
    sotto::Receive& receive = exchanges[0].receives.at(0);
    std::ranges::copy(frame, receive.buffer.begin());
    receive.bytes = frame.size();
  }

  std::vector<float> x = {0};
  std::vector<float> g = {0};
  std::vector<std::unique_ptr<sotto::ProgramAlgorithm>> nodes;
  std::vector<sotto::Exchange> exchanges;
};

}  // namespace

std::vector<std::byte> example_rows(std::uint8_t kind) {
  const Pair pair(kind);
  const auto payload = sotto::parse_frame(pair.exchanges[1].sends.at(0).frame)->payload;
  return {payload.begin(), payload.end()};
}

void hear_rows(std::string_view /*name*/, std::span<const std::byte> input) {
  sotto::ByteReader in(input);
  Pair pair(in.read<std::uint8_t>() % kRowKinds);
  sotto::test::OtherFrames frames(pair.exchanges[0]);
  sotto::FrameHeader header = sotto::parse_frame(frames.right(0))->header;
  header.elements = in.read<std::uint16_t>();
  const auto payload = in.take(in.remaining());
  header.payload_bytes = payload.size();
  Bytes frame(sotto::kFrameHeaderBytes + payload.size());
  std::ranges::copy(payload, frame.begin() + sotto::kFrameHeaderBytes);
  sotto::seal_frame(header, frame);
  frames.show(0, std::move(frame));
  sotto::ProgramAlgorithm& node = *pair.nodes[0];
  if (node.complete(frames.exchange()).ok()) {
    return;
  }
  check(node.counters().bad_frames == 1, "a frame that is refused is counted");
  frames.show_right(0);
  check(node.complete(frames.exchange()).ok(), "a right frame is taken behind a wrong one");
}

void read_grid(std::string_view /*name*/, std::span<const std::byte> input) {
  sotto::ByteReader in(input);
  const int nodes = in.read<std::uint8_t>();
  const auto rest = in.take(in.remaining());
  const std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  try {
    const sotto::NodeGrid grid(text, nodes);
    check(sotto::NodeGrid(grid.text(), nodes).text() == grid.text(),
          "a grid reads as it is written");
    for (sotto::Rank rank = 0; rank < nodes; ++rank) {
      check(grid.all(rank).position == rank, "all nodes are one group");
    }
  } catch (const sotto::Error&) {
    return;
  }
}

}  // namespace sotto_fuzz
