#include <sotto/groups/programs/block_attention.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <sotto/base/check.h>

namespace sotto {
namespace {

/// Queries whose scores are there at a time.
constexpr std::size_t kStrip = 64;

}  // namespace

BlockAttention::BlockAttention(std::size_t queries, std::size_t keys, std::size_t heads,
                               std::size_t width)
    : heads_(heads),
      width_(width),
      scale_(1.0F / std::sqrt(static_cast<float>(width))),
      maximum_(queries * heads),
      sum_(queries * heads),
      dot_(queries * heads),
      scores_(kStrip * keys),
      changes_(kStrip * keys),
      transposed_(kStrip * keys),
      strip_q_(kStrip * width),
      strip_do_(kStrip * width),
      keys_(keys * width),
      values_(keys * width),
      made_(std::max(kStrip, keys) * width) {
  check(keys > 0 && heads > 0 && width > 0, "attention has keys, heads and a width");
}

std::size_t BlockAttention::room() const {
  return maximum_.size() + sum_.size() + dot_.size() + 3 * scores_.size() + 2 * strip_q_.size() +
         2 * keys_.size() + made_.size();
}

void BlockAttention::begin(std::span<float> out) {
  std::ranges::fill(maximum_, -std::numeric_limits<float>::infinity());
  std::ranges::fill(sum_, 0.0F);
  std::ranges::fill(out, 0.0F);
}

template <typename Work>
void BlockAttention::each_strip(const AttentionTile& tile, const AttentionInput& in,
                                const Work& work) {
  for (std::size_t head = 0; head < heads_ && tile.keys.size > 0; ++head) {
    gather(in.k, tile.keys, head, keys_);
    gather(in.v, tile.keys, head, values_);
    for (std::size_t first = 0; first < tile.queries.size; first += kStrip) {
      const Strip strip = {.first = first,
                           .rows = std::min(kStrip, tile.queries.size - first),
                           .row = tile.queries.offset + first,
                           .head = head};
      score(strip, tile.keys.size, in.q);
      work(strip);
    }
  }
}

void BlockAttention::gather(std::span<const float> rows, const Chunk& which, std::size_t head,
                            std::span<float> out) const {
  for (std::size_t r = 0; r < which.size; ++r) {
    const auto row = rows.subspan((which.offset + r) * row_elements() + head * width_, width_);
    std::ranges::copy(row, out.begin() + static_cast<std::ptrdiff_t>(r * width_));
  }
}

void BlockAttention::scatter(std::span<const float> part, const Chunk& which, std::size_t head,
                             std::span<float> rows) const {
  for (std::size_t r = 0; r < which.size; ++r) {
    for (std::size_t c = 0; c < width_; ++c) {
      rows[(which.offset + r) * row_elements() + head * width_ + c] += part[r * width_ + c];
    }
  }
}

void BlockAttention::score(const Strip& strip, std::size_t keys, std::span<const float> q) {
  gather(q, {.offset = strip.row, .size = strip.rows}, strip.head, strip_q_);
  const auto scores = std::span(scores_).first(strip.rows * keys);
  product_.times_transposed({strip.rows, width_, keys},
                            std::span(strip_q_).first(strip.rows * width_),
                            std::span(keys_).first(keys * width_), scores);
  for (float& value : scores) {
    value *= scale_;
  }
}

void BlockAttention::attend(const AttentionTile& tile, const AttentionInput& in,
                            std::span<float> out) {
  each_strip(tile, in, [&](const Strip& strip) { soften(tile, strip, out); });
}

void BlockAttention::soften(const AttentionTile& tile, const Strip& strip, std::span<float> out) {
  const std::size_t keys = tile.keys.size;
  for (std::size_t r = 0; r < strip.rows; ++r) {
    const auto scores = std::span(scores_).subspan(r * keys, keys);
    const std::size_t visible = seen(tile, strip.first + r);
    float& maximum = maximum_[kept(strip.row + r, strip.head)];
    float& sum = sum_[kept(strip.row + r, strip.head)];
    const float greater = std::max(maximum, std::ranges::max(scores.first(visible)));
    const float shrink = std::exp(maximum - greater);
    sum *= shrink;
    for (std::size_t j = 0; j < keys; ++j) {
      scores[j] = j < visible ? std::exp(scores[j] - greater) : 0;
      sum += scores[j];
    }
    maximum = greater;
    for (float& value :
         out.subspan((strip.row + r) * row_elements() + strip.head * width_, width_)) {
      value *= shrink;
    }
  }
  const auto made = std::span(made_).first(strip.rows * width_);
  product_.times({strip.rows, keys, width_}, std::span(scores_).first(strip.rows * keys),
                 std::span(values_).first(keys * width_), made);
  scatter(made, {.offset = strip.row, .size = strip.rows}, strip.head, out);
}

void BlockAttention::finish(std::span<float> out) {
  for (std::size_t at = 0; at < sum_.size(); ++at) {
    for (float& value : out.subspan(at * width_, width_)) {
      value /= sum_[at];
    }
    maximum_[at] += std::log(sum_[at]);
  }
}

void BlockAttention::begin_backward(std::span<const float> out, std::span<const float> dout) {
  for (std::size_t at = 0; at < dot_.size(); ++at) {
    float dot = 0;
    for (std::size_t c = at * width_; c < (at + 1) * width_; ++c) {
      dot += out[c] * dout[c];
    }
    dot_[at] = dot;
  }
}

void BlockAttention::attend_backward(const AttentionTile& tile, const AttentionInput& in,
                                     std::span<const float> dout,
                                     const AttentionGradient& gradient) {
  each_strip(tile, in, [&](const Strip& strip) { differentiate(tile, strip, dout, gradient); });
}

void BlockAttention::differentiate(const AttentionTile& tile, const Strip& strip,
                                   std::span<const float> dout, const AttentionGradient& gradient) {
  const std::size_t keys = tile.keys.size;
  const Chunk rows = {.offset = strip.row, .size = strip.rows};
  const auto scores = std::span(scores_).first(strip.rows * keys);
  const auto changes = std::span(changes_).first(strip.rows * keys);
  const auto transposed = std::span(transposed_).first(strip.rows * keys);
  const auto q = std::span(strip_q_).first(strip.rows * width_);
  const auto d = std::span(strip_do_).first(strip.rows * width_);
  gather(dout, rows, strip.head, d);
  product_.times_transposed({strip.rows, width_, keys}, d, std::span(values_).first(keys * width_),
                            changes);
  for (std::size_t r = 0; r < strip.rows; ++r) {
    const std::size_t visible = seen(tile, strip.first + r);
    const std::size_t of_query = kept(strip.row + r, strip.head);
    for (std::size_t j = 0; j < keys; ++j) {
      float& p = scores[r * keys + j];
      p = j < visible ? std::exp(p - maximum_[of_query]) : 0;
      float& change = changes[r * keys + j];
      change = p * (change - dot_[of_query]) * scale_;
    }
  }
  const auto by_key = std::span(made_).first(keys * width_);
  transpose(strip.rows, keys, scores, transposed);
  product_.times({keys, strip.rows, width_}, transposed, d, by_key);
  scatter(by_key, tile.keys, strip.head, gradient.v);
  transpose(strip.rows, keys, changes, transposed);
  product_.times({keys, strip.rows, width_}, transposed, q, by_key);
  scatter(by_key, tile.keys, strip.head, gradient.k);
  const auto by_query = std::span(made_).first(strip.rows * width_);
  product_.times({strip.rows, keys, width_}, changes, std::span(keys_).first(keys * width_),
                 by_query);
  scatter(by_query, rows, strip.head, gradient.q);
}

}  // namespace sotto
