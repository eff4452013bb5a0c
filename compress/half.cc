#include <sotto/compress/half.h>

#include <fmt/format.h>

#include "internal/contracts.h"
#include "internal/feedback.h"
#include "internal/payload.h"

namespace sotto {
namespace {

constexpr std::size_t kBytes = sizeof(std::uint16_t);

/// What sets the two formats apart.
struct Format {
  std::string_view name;
  std::uint16_t wire_id = 0;
  double relative_error = 0;
  double absolute_error = 0;  ///< of subnormal results
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

class HalfCompressor final : public Compressor {
 public:
  HalfCompressor(const Format& format, const Ops& ops) : format_(format), ops_(ops) {}

  std::string spec() const override { return std::string(format_.name); }
  std::uint16_t wire_id() const override { return format_.wire_id; }
  std::size_t max_bytes(std::size_t elements) const override { return elements * kBytes; }
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
    return *encode_runs(x, nullptr, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    internal::Feedback feedback(prepare, v);
    return encode_runs(v, &feedback, out);
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  /// `feedback`, where it is given, is of x.
  std::optional<std::size_t> encode_runs(std::span<const float> x, internal::Feedback* feedback,
                                         std::span<std::byte> out);

  const Format& format_;
  const Ops& ops_;
  std::size_t saturated_ = 0;
};

std::optional<std::size_t> HalfCompressor::encode_runs(std::span<const float> x,
                                                       internal::Feedback* feedback,
                                                       std::span<std::byte> out) {
  saturated_ = 0;
  if (feedback == nullptr) {
    saturated_ = (ops_.*format_.narrow)(x, out.first(max_bytes(x.size())));
    return max_bytes(x.size());
  }
  const auto reduce = [&](std::size_t first, std::span<float> run, const Soon& soon) {
    saturated_ +=
        (ops_.*format_.residual)(run, out.subspan(first * kBytes, run.size() * kBytes), soon);
  };
  if (!feedback->reduce(0, x.size(), reduce)) {
    return std::nullopt;
  }
  return max_bytes(x.size());
}

Status HalfCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                  std::span<float> y) const {
  if (auto status = internal::check_length(format_.name, bytes.size(), max_bytes(y.size()));
      !status) {
    return status;
  }
  const NonFinite bad = (ops_.*format_.non_finite)(bytes);
  if (bad.count > 0) {
    return internal::non_finite(
        fmt::format("{}: {} of {} elements are not finite", format_.name, bad.count, y.size()));
  }
  (ops_.*format_.axpy)(scale, bytes, y);
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_fp16(const Ops& ops) {
  return std::make_unique<HalfCompressor>(kFp16, ops);
}

std::unique_ptr<Compressor> make_bf16(const Ops& ops) {
  return std::make_unique<HalfCompressor>(kBf16, ops);
}

}  // namespace sotto
