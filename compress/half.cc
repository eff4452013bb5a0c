#include <sotto/compress/half.h>

#include <fmt/format.h>

#include "internal/chunked.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/payload.h"
#include "internal/shares.h"

namespace sotto {
namespace {

constexpr std::size_t kHalfBytes = sizeof(std::uint16_t);

/// The differences between the two formats.
struct Format {
  std::string_view name;
  std::uint16_t wire_id = 0;
  double relative_error = 0;
  double absolute_error = 0;  ///< error of subnormal results
  std::size_t (Ops::*narrow)(std::span<const float>, std::span<std::byte>) const = nullptr;
  std::size_t (Ops::*residual)(std::span<float>, std::span<std::byte>, const Soon&) const = nullptr;
  NonFinite (Ops::*non_finite)(std::span<const std::byte>) const = nullptr;
  void (Ops::*axpy)(float, std::span<const std::byte>, std::span<float>) const = nullptr;
};

constexpr Format kFp16{.name = "fp16",
                       .wire_id = kFp16WireId,
                       .relative_error = 0x1p-11,
                       .absolute_error = 0x1p-25,
                       .narrow = &Ops::to_fp16,
                       .residual = &Ops::fp16_residual,
                       .non_finite = &Ops::fp16_non_finite,
                       .axpy = &Ops::fp16_axpy};

constexpr Format kBf16{.name = "bf16",
                       .wire_id = kBf16WireId,
                       .relative_error = 0x1p-8,
                       .absolute_error = 0x1p-134,
                       .narrow = &Ops::to_bf16,
                       .residual = &Ops::bf16_residual,
                       .non_finite = &Ops::bf16_non_finite,
                       .axpy = &Ops::bf16_axpy};

class HalfCompressor final : public internal::ChunkedCompressor {
 public:
  HalfCompressor(const Format& format, const Ops& ops) : ChunkedCompressor(ops), format_(format) {}

  std::string spec() const override { return std::string(format_.name); }
  std::uint16_t wire_id() const override { return format_.wire_id; }
  std::size_t max_bytes(std::size_t elements) const override { return elements * kHalfBytes; }
  Contract contract(std::size_t /*elements*/) const override {
    Contract contract =
        internal::contraction_contract(1 - format_.relative_error * format_.relative_error);
    contract.floor_per_element = format_.absolute_error;
    return contract;
  }
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<HalfCompressor>(*this);
  }
  std::size_t saturated() const override { return saturated_; }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    return *encode_runs(x, {}, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    return encode_runs(v, {&prepare, v}, out);
  }

 private:
  Status verify(std::span<const std::byte> bytes, std::size_t elements) const override;
  void add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first, float scale,
           std::span<float> y) const override;
  std::size_t chunk_length(std::size_t elements) const override { return elements; }
  std::optional<std::size_t> encode_runs(std::span<const float> x, const internal::Origin& origin,
                                         std::span<std::byte> out);

  const Format& format_;
  std::size_t saturated_ = 0;
};

std::optional<std::size_t> HalfCompressor::encode_runs(std::span<const float> x,
                                                       const internal::Origin& origin,
                                                       std::span<std::byte> out) {
  const auto bits_of = [&](std::size_t first, std::size_t count) {
    return out.subspan(first * kHalfBytes, count * kHalfBytes);
  };
  const auto encode_share = [&](std::size_t begin, std::size_t end) -> std::optional<std::size_t> {
    auto feedback = origin.feedback(begin, end);
    if (!feedback) {
      return (ops_.*format_.narrow)(x.subspan(begin, end - begin), bits_of(begin, end - begin));
    }
    std::size_t saturated = 0;
    const auto reduce = [&](std::size_t first, std::span<float> run, const Soon& soon) {
      saturated += (ops_.*format_.residual)(run, bits_of(first, run.size()), soon);
      add_piece(*origin.prepare, out, x.size(), first, run.size());
    };
    return feedback->reduce(begin, end - begin, reduce) ? std::optional(saturated) : std::nullopt;
  };
  const auto saturated = internal::Shares::of_elements(workers(), x.size()).sum(encode_share);
  saturated_ = saturated.value_or(0);
  return saturated ? std::optional(max_bytes(x.size())) : std::nullopt;
}

Status HalfCompressor::verify(std::span<const std::byte> bytes, std::size_t elements) const {
  if (auto status = internal::check_length(format_.name, bytes.size(), max_bytes(elements));
      !status.ok()) {
    return status;
  }
  const auto bad = internal::Shares::of_elements(workers(), elements)
                       .sum([&](std::size_t begin, std::size_t end) {
                         const auto part =
                             bytes.subspan(begin * kHalfBytes, (end - begin) * kHalfBytes);
                         return std::optional((ops_.*format_.non_finite)(part).count);
                       });
  if (*bad > 0) {
    return internal::non_finite(
        fmt::format("{}: {} of {} elements are not finite", format_.name, *bad, elements));
  }
  return {};
}

void HalfCompressor::add(std::span<const std::byte> bytes, std::size_t /*elements*/,
                         std::size_t first, float scale, std::span<float> y) const {
  (ops_.*format_.axpy)(scale, bytes.subspan(first * kHalfBytes, y.size() * kHalfBytes), y);
}

}  // namespace

std::unique_ptr<Compressor> make_fp16(const Ops& ops) {
  return std::make_unique<HalfCompressor>(kFp16, ops);
}

std::unique_ptr<Compressor> make_bf16(const Ops& ops) {
  return std::make_unique<HalfCompressor>(kBf16, ops);
}

namespace {

std::unique_ptr<Compressor> build_fp16(internal::SpecReader& /*spec*/,
                                       const internal::Wanted& wanted) {
  return make_fp16(wanted.ops);
}

std::unique_ptr<Compressor> build_bf16(internal::SpecReader& /*spec*/,
                                       const internal::Wanted& wanted) {
  return make_bf16(wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kFp16Family = {
    {"fp16", "fp16", "IEEE half precision", "contraction, δ = 1 − 2^-22 from 2^-14 to 65504",
     "fp16", kFp16WireId},
    build_fp16};

constinit const internal::Family internal::kBf16Family = {
    {"bf16", "bf16", "bfloat16: float32's range in 16 bits",
     "contraction, δ = 1 − 2^-16 from 2^-126 on", "bf16", kBf16WireId},
    build_bf16};

}  // namespace sotto
