#include <sotto/sites/epochs/epoch_mean.h>

#include <algorithm>
#include <string>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/base/xxh3.h>
#include <sotto/compress/none.h>
#include <sotto/kernels/ops.h>

namespace sotto::sites {
namespace {

/// Between the keys of two epochs; odd, so that no two of 2^64 are equal (Weyl's sequence by the
/// golden ratio).
constexpr std::uint64_t kNextEpoch = 0x9E3779B97F4A7C15;

Status too_large(std::string_view what) {
  return {Fault::non_finite, std::string(what) +
                                 " has elements that are not finite, or are too large to be "
                                 "encoded; lower the learning rate, or look at the data"};
}

}  // namespace

EpochDigest digest_of(const StepMean& mean, double learning_rate) {
  ByteBuffer all;
  all.write(mean.step);
  all.write(learning_rate);
  for (const MeanPart& part : mean.parts) {
    all.write(std::uint64_t{part.who.size()});
    all.write_span(std::span<const std::uint16_t>(part.who));
    const EpochDigest bytes = xxh3_128(part.encoding);
    all.write_span(std::span<const std::uint64_t>(bytes));
  }
  return xxh3_128(all.bytes());
}

EpochReducer::EpochReducer(std::size_t dimension, std::unique_ptr<Compressor> compressor,
                           std::uint64_t seed)
    : dimension_(dimension),
      compressor_(std::move(compressor)),
      seed_(seed),
      exact_(compressor_->wire_id() == kNoneWireId),
      residual_(exact_ ? 0 : dimension),
      whole_(exact_ ? 0 : dimension),
      error_(exact_ ? 0 : dimension) {
  if (!compressor_->divisible()) {
    refuse(
        "compressor", compressor_->spec(),
        "it goes by the tensors of a model, and all-reduce in epochs cuts the model into a chunk "
        "for each node; take one that goes by elements, such as quant:8");
  }
}

RandomKey EpochReducer::key(const EpochPlace& place, std::size_t bucket) const {
  return {.seed = seed_ + kNextEpoch * (place.epoch - 1),
          .rank = static_cast<Rank>(place.index),
          .round = place.step - 1,
          .purpose = Purpose::quantize,
          .bucket = static_cast<std::uint32_t>(bucket)};
}

Status EpochReducer::begin(const EpochPlace& place, std::span<const float> gradient) {
  if (has_begun(place)) {
    return {};
  }
  const Ops& ops = host_ops();
  fold(place);
  room_.assign(gradient.begin(), gradient.end());
  const std::span<float> v = room_;
  if (!exact_) {
    ops.axpy(1, error_, v);
    whole_.assign(v.begin(), v.end());
  }
  if (ops.count_non_finite(v).count > 0) {
    return too_large("the gradient");
  }
  sent_.resize(place.members);
  for (std::size_t k = 0; k < place.members; ++k) {
    const auto part = chunk(k, place.members).of(v);
    sent_[k].resize(compressor_->max_bytes(part.size()));
    const std::size_t bytes = exact_ ? compressor_->encode(part, {}, sent_[k])
                                     : compressor_->encode_residual(part, key(place, k), sent_[k]);
    sent_[k].resize(bytes);
  }
  residual_.assign(v.begin(), exact_ ? v.begin() : v.end());
  place_ = place;
  return {};
}

bool EpochReducer::decode_one(std::span<const std::byte> encoding, bool first,
                              std::span<float> y) const {
  if (exact_ && first) {
    return decode_none(encoding, y, host_ops()).ok();
  }
  if (first) {
    std::ranges::fill(y, 0.0F);
  }
  return compressor_->decode_add(encoding, 1, y).ok();
}

bool EpochReducer::decodes(std::span<const std::byte> encoding, std::size_t index,
                           std::size_t members) {
  room_.resize(chunk(index, members).size);
  return decode_one(encoding, true, room_);
}

Result<MeanPart> EpochReducer::make(
    const EpochPlace& place, const std::map<std::uint16_t, std::vector<std::byte>>& encodings) {
  const Ops& ops = host_ops();
  fold(place);
  const Chunk own = chunk(place.index, place.members);
  std::vector<float> sum(own.size);
  MeanPart part;
  const std::size_t from = exact_ ? place.index : 0;
  bool first = true;
  for (std::size_t k = 0; k < place.members; ++k) {
    const auto member = static_cast<std::uint16_t>((from + k) % place.members);
    const auto found = encodings.find(member);
    if (found == encodings.end()) {
      continue;
    }
    if (!decode_one(found->second, first, sum)) {
      return too_large("a chunk of a gradient");
    }
    first = false;
    part.who.push_back(member);
  }
  std::ranges::sort(part.who);
  ops.scale(1.0F / static_cast<float>(part.who.size()), sum);
  if (!chunk_error_.empty()) {
    ops.axpy(1, chunk_error_, sum);
  }
  if (ops.count_non_finite(sum).count > 0) {
    return too_large("the mean of the gradients");
  }
  part.encoding.resize(compressor_->max_bytes(sum.size()));
  part.encoding.resize(
      exact_ ? compressor_->encode(sum, {}, part.encoding)
             : compressor_->encode_residual(sum, key(place, place.members), part.encoding));
  made_residual_ = std::move(sum);
  made_ = place;
  return part;
}

bool EpochReducer::decode(const StepMean& mean, std::span<float> gradient) const {
  for (std::size_t k = 0; k < mean.parts.size(); ++k) {
    if (!decode_one(mean.parts[k].encoding, true, chunk(k, mean.parts.size()).of(gradient))) {
      return false;
    }
  }
  return true;
}

bool EpochReducer::commit(const StepMean& mean, bool offered) {
  const std::size_t n = mean.parts.size();
  bool whole = offered && place_ && place_->step == mean.step && place_->members == n;
  if (whole) {
    const auto self = static_cast<std::uint16_t>(place_->index);
    for (std::size_t k = 0; k < n; ++k) {
      const bool in = std::ranges::binary_search(mean.parts[k].who, self);
      whole &= in;
      if (!exact_) {
        const Chunk part = chunk(k, n);
        const auto left = part.of(std::span<const float>(in ? residual_ : whole_));
        std::ranges::copy(left, part.of(std::span<float>(error_)).begin());
      }
    }
  }
  if (!exact_ && made_ && made_->step == mean.step && made_->members == n) {
    error_chunk_ = chunk(made_->index, n);
    error_epoch_ = made_->epoch;
    chunk_error_ = made_residual_;
  }
  place_.reset();
  made_.reset();
  return whole;
}

void EpochReducer::fold(const EpochPlace& place) {
  if (!chunk_error_.empty() && error_epoch_ != place.epoch) {
    host_ops().axpy(static_cast<float>(place.members), chunk_error_,
                    error_chunk_.of(std::span<float>(error_)));
    chunk_error_.clear();
  }
}

void EpochReducer::clear() {
  std::ranges::fill(error_, 0.0F);
  chunk_error_.clear();
  place_.reset();
  made_.reset();
}

}  // namespace sotto::sites
