#include <sotto/compress/topk.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>

#include "internal/coded_values.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/keep.h"
#include "internal/payload.h"
#include "internal/shares.h"
#include "internal/threshold_forecast.h"
#include "internal/topk_format.h"

namespace sotto {
namespace {

/// Elements that are looked through at a time: 64 KiB.
constexpr std::size_t kPiece = 16384;
/// Multiples of k: how many elements are above the bound when its distance from the threshold
/// is set, from and to how many it is kept, and how many there is room for. With error feedback
/// about k elements come up to the threshold in each round.
constexpr std::size_t kAbove = 2;
constexpr double kFew = 1.5;
constexpr double kMany = 3;
constexpr std::size_t kRoom = 8;
/// Elements of a sample that are above the bound by it: there are 100 % ± 9 % of kAbove × k then.
constexpr std::size_t kSampled = 128;
/// Elements that are fetched before the first of them is needed.
constexpr std::size_t kFetched = 64;

/// Sets these elements of v to zero.
void leave_out(std::span<const std::uint32_t> indices, std::span<float> v) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kFetched < indices.size()) {
      __builtin_prefetch(&v[indices[i + kFetched]], 1);
    }
    v[indices[i]] = 0;
  }
}

class TopkCompressor final : public Compressor {
 public:
  TopkCompressor(double keep_ratio, const Ops& ops) : keep_ratio_(keep_ratio), ops_(ops) {}

  std::string spec() const override { return fmt::format("topk:{}", keep_ratio_); }
  std::uint16_t wire_id() const override { return kTopkWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return internal::topk_max_bytes(kept(elements), elements);
  }
  Contract contract(std::size_t elements) const override {
    return internal::contraction_contract(
        elements == 0 ? 1.0 : static_cast<double>(kept(elements)) / static_cast<double>(elements));
  }
  std::unique_ptr<Compressor> clone() const override { return make_topk(keep_ratio_, ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    select(x, {});
    return write(x.size(), out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  std::size_t kept(std::size_t elements) const {
    return internal::kept_elements(keep_ratio_, elements);
  }

  struct Entries {
    void resize(std::size_t count) {
      indices.resize(count);
      values.resize(count);
    }
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
  };

  /// Makes x where it is not there, and fills chosen_. False: called off.
  bool select(std::span<const float> x, const internal::Origin& origin);
  /// Makes x where it is not there, and where there is a bound, fills near_ with what is above it.
  /// Returns how much that is, nothing where it is unknown, or more than there is room for; false
  /// in `done`: called off.
  std::optional<std::size_t> collect(std::span<const float> x, const internal::Origin& origin,
                                     Workers* workers, bool& done);
  /// The magnitude that about kAbove × k elements of x exceed, by a sample of it; 0 where x or k is
  /// too small for one. Overwrites near_.
  std::uint32_t sampled_bound(std::span<const float> x, std::size_t k);
  /// The distance from the threshold down to the magnitude that about kAbove × k elements exceed:
  /// as it was, where that still holds. `among`: all that is known to matter.
  std::uint32_t distance(std::span<const float> among, std::size_t k,
                         std::uint32_t threshold) const;
  std::size_t write(std::size_t elements, std::span<std::byte> out) const;

  double keep_ratio_;
  const Ops& ops_;
  Entries chosen_;  ///< the k largest
  Entries near_;    ///< all elements of magnitude above the forecast's bound
  /// Few elements of x are likely to be above its bound. They are collected while x is in the
  /// cache, and are most likely all that matters; the result does not depend on it.
  internal::ThresholdForecast forecast_;
};

std::optional<std::size_t> TopkCompressor::collect(std::span<const float> x,
                                                   const internal::Origin& origin, Workers* workers,
                                                   bool& done) {
  const internal::Shares shares = internal::Shares::of_elements(workers, x.size());
  const std::uint32_t bound = forecast_.bound();
  // Each share has a room of its own for what it finds.
  const std::size_t room = near_.indices.size() / shares.count();
  std::array<std::size_t, internal::Shares::kMost> found{};
  std::array<bool, internal::Shares::kMost> made{};
  shares.each([&](std::size_t share, std::size_t begin, std::size_t end) {
    auto feedback = origin.feedback(begin, end);
    const auto indices = std::span(near_.indices).subspan(share * room, room);
    const auto values = std::span(near_.values).subspan(share * room, room);
    for (; begin < end; begin += kPiece) {
      const std::size_t count = std::min(kPiece, end - begin);
      if (feedback && !feedback->make_until(begin + count)) {
        return;
      }
      if (found[share] <= room && bound > 0) {
        const auto free = indices.subspan(found[share]);
        const std::size_t more =
            ops_.gather_above(x.subspan(begin, count), bound, free, values.subspan(found[share]));
        for (std::uint32_t& index : free.first(std::min(more, free.size()))) {
          index += static_cast<std::uint32_t>(begin);
        }
        found[share] += more;
      }
    }
    made[share] = true;
  });
  const auto used = std::span(found).first(shares.count());
  done = std::ranges::all_of(std::span(made).first(shares.count()), std::identity());
  if (bound == 0 || std::ranges::any_of(used, [=](std::size_t count) { return count > room; })) {
    return std::nullopt;
  }
  std::size_t total = 0;
  for (std::size_t share = 0; share < used.size(); ++share) {
    const auto from = static_cast<std::ptrdiff_t>(share * room);
    const auto to = static_cast<std::ptrdiff_t>(total);
    std::copy_n(near_.indices.begin() + from, used[share], near_.indices.begin() + to);
    std::copy_n(near_.values.begin() + from, used[share], near_.values.begin() + to);
    total += used[share];
  }
  return total;
}

bool TopkCompressor::select(std::span<const float> x, const internal::Origin& origin) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(), "topk: more than 2^32 − 1 elements");
  const std::size_t k = kept(x.size());
  chosen_.resize(k);
  near_.resize(std::min(x.size(), kRoom * k + kFetched));
  bool done = false;
  auto found = collect(x, origin, workers(), done);
  if (!done || k == 0) {
    return done;
  }
  if (found.value_or(0) < k) {
    forecast_.set(sampled_bound(x, k));
    // In one share: all that is large may lie in the same part of x.
    found = collect(x, {}, nullptr, done);
  }
  const bool enough = found.value_or(0) >= k;
  const auto among = enough ? std::span<const float>(near_.values).first(*found) : x;
  const TopK top = ops_.top_k(among, k);
  ops_.top_k_gather(among, top, chosen_.indices, chosen_.values);
  if (enough) {
    for (std::uint32_t& index : chosen_.indices) {
      index = near_.indices[index];
    }
  }
  forecast_.learn(top.threshold, distance(among, k, top.threshold));
  return true;
}

std::uint32_t TopkCompressor::sampled_bound(std::span<const float> x, std::size_t k) {
  const std::size_t stride = (kAbove * k / kSampled) | 1;  // odd: the rows of layers seldom are
  const std::size_t count = x.size() / stride;
  if (stride == 1 || count < kSampled || count > near_.values.size()) {
    return 0;
  }
  const auto sample = std::span(near_.values).first(count);
  for (std::size_t i = 0; i < count; ++i) {
    sample[i] = x[i * stride];
  }
  return ops_.top_k(sample, kSampled).threshold;
}

std::uint32_t TopkCompressor::distance(std::span<const float> among, std::size_t k,
                                       std::uint32_t threshold) const {
  const std::uint32_t before = std::min(forecast_.distance(), threshold);
  const auto above =
      static_cast<double>(before == 0 ? 0 : ops_.gather_above(among, threshold - before, {}, {}));
  if (above >= kFew * static_cast<double>(k) && above <= kMany * static_cast<double>(k)) {
    return before;
  }
  return threshold - ops_.top_k(among, std::min(kAbove * k, among.size())).threshold;
}

std::optional<std::size_t> TopkCompressor::encode_prepared(const Prepare& prepare,
                                                           std::span<float> v,
                                                           const RandomKey& /*key*/,
                                                           std::span<std::byte> out) {
  if (!select(v, {&prepare, v})) {
    return std::nullopt;
  }
  // Tasks that have nothing to do with each other: the frame, and what is left in parts of v.
  constexpr std::size_t kParts = 4;
  const std::size_t k = chosen_.indices.size();
  std::size_t written = 0;
  internal::Shares(workers(), 1 + kParts, v.size())
      .each([&](std::size_t, std::size_t task, auto end) {
        for (; task < end; ++task) {
          if (task == 0) {
            written = write(v.size(), out);
          } else {
            const std::size_t first = k * (task - 1) / kParts;
            leave_out(std::span(chosen_.indices).subspan(first, k * task / kParts - first), v);
          }
        }
      });
  return finish_prepared(prepare, out.first(written));
}

std::size_t TopkCompressor::write(std::size_t elements, std::span<std::byte> out) const {
  return internal::write_topk(chosen_.indices, chosen_.values, elements, out);
}

Status TopkCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                  std::span<float> y) const {
  const std::size_t k = kept(y.size());
  const auto payload = internal::read_topk(bytes, k, y.size());
  if (!payload) {
    return payload.status();
  }
  internal::RiceReader indices = payload->indices();
  std::array<std::uint32_t, kFetched> places{};
  for (std::size_t first = 0; first < k; first += kFetched) {
    const auto batch = std::span(places).first(std::min(kFetched, k - first));
    indices.read(batch);
    for (const std::uint32_t place : batch) {
      __builtin_prefetch(&y[place], 1);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      float& target = y[batch[i]];
      target = target + scale * internal::load<float>(payload->values, first + i);
    }
  }
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_topk(double keep_ratio, const Ops& ops) {
  internal::check_keep_ratio(keep_ratio);
  return std::make_unique<TopkCompressor>(keep_ratio, ops);
}

std::optional<CodedTopkOptions> internal::take_coded_topk(SpecReader& spec, double& keep_ratio) {
  keep_ratio = spec.take_double("KEEP", "a number in (0, 1]");
  const auto bits = take_value_bits(spec);
  const auto chunk = spec.chunk();
  CodedTopkOptions options;
  options.keep_ratio = keep_ratio;
  options.value_bits = bits.value_or(kFloatBits);
  options.chunk = chunk.value_or(bits ? options.chunk : 0);
  return options.value_bits == kFloatBits && options.chunk == 0 ? std::nullopt
                                                                : std::optional(options);
}

namespace {

std::unique_ptr<Compressor> build_topk(internal::SpecReader& spec, const internal::Wanted& wanted) {
  double keep_ratio = 0;
  const auto coded = internal::take_coded_topk(spec, keep_ratio);
  return coded ? make_coded_topk(*coded, wanted.ops) : make_topk(keep_ratio, wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kTopkFamily = {
    {"topk", "topk:KEEP[,values=B][,chunk=N]",
     "the KEEP × d largest elements with coded indices, exact or in B bits a value, of all or of "
     "each N",
     "contraction, δ = KEEP; values=B: δ of the worst case is far smaller", "topk:0.1", kTopkWireId,
     kCodedTopkWireId},
    build_topk};

}  // namespace sotto
