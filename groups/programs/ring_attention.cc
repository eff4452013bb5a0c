#include <sotto/groups/programs/ring_attention.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// Checks the options, for initializers.
RingAttentionOptions checked_attention(RingAttentionOptions options) {
  require_between("heads", options.heads, 1, kMostDimension);
  require_between("width", options.width, 1, kMostDimension / options.heads);
  require_between("positions", options.positions, 1,
                  kMostDimension / options.heads / options.width);
  return options;
}

}  // namespace

RingAttention::RingAttention(const ProgramNode& node, RingAttentionOptions options)
    : options_(checked_attention(std::move(options))),
      member_(node.member(options_.axis)),
      position_(member_.group.position),
      members_(member_.group.size()),
      codec_(elements(), {.data = Carried::activation, .compressor = options_.compressor},
             node.ops()),
      exact_(elements(), {.data = Carried::activation_gradient}, node.ops()),
      block_(rows(), longest_chunk(options_.positions, 2 * members_), options_.heads,
             options_.width) {
  member_.frames = std::make_shared<FrameRoom>();
  for (int step = 0; step < members_; ++step) {
    tiles_.push_back(tiles_of(source(step)));
  }
  const std::size_t rows = 2 * most_rows();  // keys and values
  moving_.resize(rows * elements());
  moving_gradient_.resize(rows * elements());
  if (members_ > 1) {
    own_bytes_.resize(rows * codec_.row_bytes());
    moving_bytes_.resize(rows * codec_.row_bytes());
    gradient_bytes_.resize(rows * exact_.row_bytes());
  }
}

std::array<Chunk, 2> RingAttention::pieces_of(int node) const {
  return {chunk_of(options_.positions, 2 * members_, node),
          chunk_of(options_.positions, 2 * members_, 2 * members_ - 1 - node)};
}

std::size_t RingAttention::rows_of(int node) const {
  const auto pieces = pieces_of(node);
  return pieces[0].size + pieces[1].size;
}

std::size_t RingAttention::most_rows() const {
  std::size_t most = 0;
  for (int node = 0; node < members_; ++node) {
    most = std::max(most, rows_of(node));
  }
  return most;
}

std::vector<AttentionTile> RingAttention::tiles_of(int from) const {
  const auto own = pieces();
  const auto other = pieces_of(from);
  std::vector<AttentionTile> tiles;
  for (std::size_t a = 0; a < 2; ++a) {
    for (std::size_t b = 0; b < 2; ++b) {
      const bool later = other[b].offset > own[a].offset;
      if (options_.causal && later) {
        continue;
      }
      tiles.push_back({.queries = {.offset = a == 0 ? 0 : own[0].size, .size = own[a].size},
                       .keys = {.offset = b == 0 ? 0 : other[0].size, .size = other[b].size},
                       .diagonal = options_.causal && from == position_ && a == b});
    }
  }
  return tiles;
}

double RingAttention::pairs(int step) const {
  double sum = 0;
  for (const AttentionTile& tile : tiles_[static_cast<std::size_t>(step)]) {
    sum += static_cast<double>(tile.pairs());
  }
  return sum;
}

ExchangeVolume RingAttention::volume() const {
  ExchangeVolume sum;
  for (const auto& hop : hops_) {
    sum += hop->volume();
  }
  return sum;
}

std::size_t RingAttention::room_bytes() const {
  const std::size_t floats = block_.room() + moving_.size() + moving_gradient_.size();
  return floats * sizeof(float) + own_bytes_.size() + moving_bytes_.size() +
         gradient_bytes_.size() + member_.frames->bytes();
}

void RingAttention::check_rows(const AttentionInput& in) const {
  const std::size_t size = rows() * elements();
  check(in.q.size() == size && in.k.size() == size && in.v.size() == size,
        "queries, keys and values have this node's rows");
}

// Stages.

void RingAttention::list_stage(const std::string& what, double flops,
                               std::function<Status()> compute, Collective* collective,
                               Stages& stages) const {
  stages.push_back({fmt::format("{} of {} positions{}: {}", options_.name, options_.positions,
                                options_.causal ? ", causal" : "", what),
                    [run = std::move(compute)](const RoundInput&) { return run(); }, collective,
                    flops});
}

RingHop& RingAttention::add_hop(const std::string& what, int step, RowCodec& codec) {
  const HopRows rows = {.out = 2 * rows_of(source(step)),
                        .in = 2 * rows_of(source(step + 1)),
                        .most = 2 * most_rows()};
  hops_.push_back(std::make_unique<RingHop>(
      member_, fmt::format("{} of {} heads", what, options_.heads), rows, codec));
  return *hops_.back();
}

void RingAttention::list_forward(const AttentionInput& in, std::span<float> out,
                                 std::vector<ProgramStage>& stages) {
  check_rows(in);
  check(out.size() == in.q.size(), "attention's output has this node's rows");
  for (int step = 0; step < members_; ++step) {
    const bool last = step + 1 == members_;
    RingHop* const hop = last ? nullptr : &add_hop("keys and values", step, codec_);
    const double flops = 4 * pairs(step) * static_cast<double>(elements());
    list_stage(
        fmt::format("step {}", step), flops,
        [this, in, out, step, hop, last] {
          if (step == 0) {
            if (Status status = begin_round_trip(in, hop); !status.ok()) {
              return status;
            }
            block_.begin(out);
          }
          attend(in, out, step);
          if (last) {
            return finish(out);
          }
          pass_on(*hop, step);
          return Status();
        },
        hop, stages);
  }
}

void RingAttention::list_backward(const AttentionInput& in, std::span<const float> out,
                                  std::span<const float> dout, const AttentionGradient& gradient,
                                  std::vector<ProgramStage>& stages) {
  check_rows(in);
  check(out.size() == in.q.size() && dout.size() == in.q.size() &&
            gradient.q.size() == in.q.size() && gradient.k.size() == in.q.size() &&
            gradient.v.size() == in.q.size(),
        "gradients of attention have this node's rows");
  for (int step = 0; step < members_; ++step) {
    const bool last = step + 1 == members_;
    RingHop* const hop = last ? nullptr : &add_hop("keys and values back", step, codec_);
    const double flops = 10 * pairs(step) * static_cast<double>(elements());
    list_stage(
        fmt::format("step {} back", step), flops,
        [this, in, out, dout, gradient, step, hop] {
          if (step == 0) {
            if (Status status = repeat_round_trip(in); !status.ok()) {
              return status;
            }
            std::ranges::fill(gradient.q, 0.0F);
            block_.begin_backward(out, dout);
          }
          attend_backward(in, dout, gradient, step);
          if (hop != nullptr) {
            pass_on(*hop, step);
          }
          return Status();
        },
        hop, stages);
    if (members_ > 1) {
      RingHop* const home = &add_hop("gradients of keys and values", step, exact_);
      list_stage(
          fmt::format("gradients of step {}", step), 0,
          [this, home, step] { return pass_gradient_on(*home, step); }, home, stages);
    }
  }
  list_stage(
      "gradients", 0,
      [this, gradient] {
        const auto whole = std::span<const float>(moving_gradient_);
        const std::size_t size = gradient.k.size();
        std::ranges::copy(whole.first(size), gradient.k.begin());
        std::ranges::copy(whole.subspan(size, size), gradient.v.begin());
        for (const auto part : {gradient.q, gradient.k, gradient.v}) {
          if (Status status = member_.node->require_finite(part, "gradient of the attention");
              !status.ok()) {
            return status;
          }
        }
        return Status();
      },
      nullptr, stages);
}

// What goes round.

void RingAttention::stay(const AttentionInput& in) {
  std::ranges::copy(in.k, moving_.begin());
  std::ranges::copy(in.v, moving_.begin() + static_cast<std::ptrdiff_t>(in.k.size()));
}

Status RingAttention::begin_round_trip(const AttentionInput& in, RingHop* first) {
  stay(in);
  if (first == nullptr) {
    return {};
  }
  const Status status = first->encode(std::span(moving_).first(2 * in.k.size()), own_bytes_);
  return status.ok() ? repeat_round_trip(in) : status;
}

Status RingAttention::repeat_round_trip(const AttentionInput& in) {
  std::ranges::fill(moving_gradient_, 0.0F);
  if (members_ == 1) {
    stay(in);
    return {};
  }
  std::ranges::copy(own_bytes_, moving_bytes_.begin());
  for (std::size_t i = 0; i < 2 * rows(); ++i) {
    const auto bytes = std::span(own_bytes_).subspan(i * codec_.row_bytes(), codec_.row_bytes());
    const auto row = std::span(moving_).subspan(i * elements(), elements());
    if (Status status = codec_.decode(bytes, row, false); !status.ok()) {
      return member_.node->here(status);
    }
  }
  return {};
}

void RingAttention::pass_on(RingHop& hop, int step) {
  const std::size_t out = 2 * rows_of(source(step));
  const std::size_t in = 2 * rows_of(source(step + 1));
  hop.begin(std::span(moving_bytes_).first(out * codec_.row_bytes()),
            std::span(moving_bytes_).first(in * codec_.row_bytes()),
            std::span(moving_).first(in * elements()));
}

Status RingAttention::pass_gradient_on(RingHop& hop, int step) {
  const std::size_t out = 2 * rows_of(source(step));
  const std::size_t in = 2 * rows_of(source(step + 1));
  const auto room = std::span(gradient_bytes_);
  if (Status status = hop.encode(std::span(moving_gradient_).first(out * elements()), room);
      !status.ok()) {
    return status;
  }
  hop.begin(room.first(out * exact_.row_bytes()), room.first(in * exact_.row_bytes()),
            std::span(moving_gradient_).first(in * elements()));
  return {};
}

AttentionInput RingAttention::here(int step, std::span<const float> q) const {
  const std::size_t size = rows_of(source(step)) * elements();
  const auto whole = std::span<const float>(moving_);
  return {.q = q, .k = whole.first(size), .v = whole.subspan(size, size)};
}

void RingAttention::attend(const AttentionInput& in, std::span<float> out, int step) {
  if (options_.exchanges_only) {
    return;
  }
  for (const AttentionTile& tile : tiles_[static_cast<std::size_t>(step)]) {
    block_.attend(tile, here(step, in.q), out);
  }
}

Status RingAttention::finish(std::span<float> out) {
  if (options_.exchanges_only) {
    return {};
  }
  block_.finish(out);
  return member_.node->require_finite(out, "output of the attention");
}

void RingAttention::attend_backward(const AttentionInput& in, std::span<const float> dout,
                                    const AttentionGradient& gradient, int step) {
  if (options_.exchanges_only) {
    return;
  }
  const std::size_t size = rows_of(source(step)) * elements();
  const auto whole = std::span(moving_gradient_);
  for (const AttentionTile& tile : tiles_[static_cast<std::size_t>(step)]) {
    block_.attend_backward(
        tile, here(step, in.q), dout,
        {.q = gradient.q, .k = whole.first(size), .v = whole.subspan(size, size)});
  }
}

}  // namespace sotto
