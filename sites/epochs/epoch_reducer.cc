#include <sotto/sites/epochs/epoch_reducer.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <sotto/base/error.h>
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

Status EpochReducer::encode(const EpochPlace& place, std::size_t chunk,
                            std::span<const float> gradient) {
  if (place_ != place) {
    fold(place);
    sent_.assign(place.members, std::nullopt);
    place_ = place;
  }
  if (sent_[chunk]) {
    return {};
  }
  const Ops& ops = host_ops();
  const Chunk part = this->chunk(chunk, place.members);
  const auto given = part.of(gradient);
  const auto w = exact_ ? std::span<float>() : part.of(std::span<float>(residual_));
  if (!exact_) {
    std::ranges::copy(given, w.begin());
    ops.axpy(1, part.of(std::span<const float>(error_)), w);
    std::ranges::copy(w, part.of(std::span<float>(whole_)).begin());
  }
  if (ops.count_non_finite(exact_ ? given : w).count > 0) {
    return too_large("the gradient");
  }
  std::vector<std::byte> bytes = pool_.take(compressor_->max_bytes(part.size));
  if (exact_) {  // the floats as they are
    const auto floats = std::as_bytes(given);
    bytes.insert(bytes.end(), floats.begin(), floats.end());
  } else {
    bytes.resize(compressor_->max_bytes(part.size));
    bytes.resize(compressor_->encode_residual(w, key(place, chunk), bytes));
  }
  sent_[chunk] = pool_.share(std::move(bytes));
  return {};
}

bool EpochReducer::decode_one(std::span<const std::byte> encoding, std::span<float> y) const {
  if (exact_) {
    return decode_none(encoding, y, host_ops()).ok();
  }
  std::ranges::fill(y, 0.0F);
  return compressor_->decode_add(encoding, 1, y).ok();
}

bool EpochReducer::decodes(std::span<const std::byte> encoding, std::size_t index,
                           std::size_t members) {
  const std::size_t elements = chunk(index, members).size;
  if (exact_) {
    return encoding.size() == elements * sizeof(float) &&
           host_ops().fp32_non_finite(encoding).count == 0;
  }
  room_.resize(elements);
  return decode_one(encoding, room_);
}

Result<MeanPart> EpochReducer::make(const EpochPlace& place,
                                    const std::map<std::uint16_t, SharedBytes>& encodings) {
  fold(place);
  MeanPart part;
  std::vector<SharedBytes> in_order;
  in_order.reserve(encodings.size());
  const std::size_t from = exact_ ? place.index : 0;
  for (std::size_t k = 0; k < place.members; ++k) {
    const auto member = static_cast<std::uint16_t>((from + k) % place.members);
    if (const auto found = encodings.find(member); found != encodings.end()) {
      in_order.push_back(found->second);
      part.who.push_back(member);
    }
  }
  std::ranges::sort(part.who);
  auto mean = exact_ ? exact_mean(chunk(place.index, place.members).size, in_order)
                     : compressed_mean(place, in_order);
  if (!mean) {
    return mean.status();
  }
  part.encoding = *std::move(mean);
  made_ = place;
  return part;
}

Result<SharedBytes> EpochReducer::exact_mean(std::size_t elements,
                                             std::span<const SharedBytes> floats) {
  const Ops& ops = host_ops();
  const float share = 1.0F / static_cast<float>(floats.size());
  std::vector<float> room(std::min(elements, ops.piece()));
  std::vector<std::byte> mean = pool_.take(elements * sizeof(float));
  bool finite = true;
  for (std::size_t first = 0; first < elements; first += room.size()) {
    const auto sum = std::span(room).first(std::min(room.size(), elements - first));
    const auto piece = [&](std::span<const std::byte> bytes) {
      return bytes.subspan(first * sizeof(float), sum.size_bytes());
    };
    ops.from_host(piece(floats.front()), sum);
    for (const SharedBytes& more : floats.subspan(1)) {
      ops.fp32_axpy(1, piece(more), sum);
    }
    finite = ops.combine({{share, sum}}, sum) && finite;
    const auto bytes = std::as_bytes(sum);
    mean.insert(mean.end(), bytes.begin(), bytes.end());
  }
  return finite ? Result<SharedBytes>(pool_.share(std::move(mean)))
                : too_large("the mean of the gradients");
}

Result<SharedBytes> EpochReducer::compressed_mean(const EpochPlace& place,
                                                  std::span<const SharedBytes> encodings) {
  const Ops& ops = host_ops();
  std::vector<float> sum(chunk(place.index, place.members).size);
  for (const SharedBytes& encoding : encodings) {
    if (!compressor_->decode_add(encoding, 1, sum).ok()) {
      return too_large("a chunk of a gradient");
    }
  }
  ops.scale(1.0F / static_cast<float>(encodings.size()), sum);
  if (!chunk_error_.empty()) {
    ops.axpy(1, chunk_error_, sum);
  }
  if (ops.count_non_finite(sum).count > 0) {
    return too_large("the mean of the gradients");
  }
  std::vector<std::byte> mean(compressor_->max_bytes(sum.size()));
  mean.resize(compressor_->encode_residual(sum, key(place, place.members), mean));
  made_residual_ = std::move(sum);
  return SharedBytes(std::move(mean));
}

bool EpochReducer::decode(const StepMean& mean, std::span<float> gradient) const {
  for (std::size_t k = 0; k < mean.parts.size(); ++k) {
    if (!decode_one(mean.parts[k].encoding, chunk(k, mean.parts.size()).of(gradient))) {
      return false;
    }
  }
  return true;
}

bool EpochReducer::commit(const StepMean& mean, bool offered) {
  const std::size_t n = mean.parts.size();
  bool whole = false;
  if (place_ && place_->step == mean.step && place_->members == n) {
    whole = offered;
    const auto self = static_cast<std::uint16_t>(place_->index);
    for (std::size_t k = 0; const MeanPart& made : mean.parts) {
      const bool in = std::ranges::binary_search(made.who, self);
      whole &= in;
      if (!exact_ && sent_[k]) {
        const Chunk part = chunk(k, n);
        const auto left = part.of(std::span<const float>(in ? residual_ : whole_));
        std::ranges::copy(left, part.of(std::span<float>(error_)).begin());
      }
      ++k;
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
  begin_epoch();
}

}  // namespace sotto::sites
