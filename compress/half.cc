#include <sotto/compress/half.h>

#include <array>

#include <fmt/format.h>

#include "internal/contracts.h"
#include "internal/feedback.h"
#include "internal/payload.h"

namespace sotto {
namespace {

using internal::kStage;

/// What sets the two formats apart.
struct Format {
  std::string_view name;
  std::uint16_t wire_id = 0;
  std::uint16_t exponent_mask = 0;  ///< all ones in it: an infinity or a NaN
  double relative_error = 0;
  double absolute_error = 0;  ///< of subnormal results
  std::size_t (Ops::*narrow)(std::span<const float>, std::span<std::uint16_t>) const = nullptr;
  void (Ops::*axpy)(float, std::span<const std::uint16_t>, std::span<float>) const = nullptr;
};

constexpr Format kFp16{.name = "fp16",
                       .wire_id = kFp16WireId,
                       .exponent_mask = 0x7C00,
                       .relative_error = 0x1p-11,
                       .absolute_error = 0x1p-25,
                       .narrow = &Ops::to_fp16,
                       .axpy = &Ops::fp16_axpy};

constexpr Format kBf16{.name = "bf16",
                       .wire_id = kBf16WireId,
                       .exponent_mask = 0x7F80,
                       .relative_error = 0x1p-8,
                       .absolute_error = 0x1p-134,
                       .narrow = &Ops::to_bf16,
                       .axpy = &Ops::bf16_axpy};

class HalfCompressor final : public Compressor {
 public:
  HalfCompressor(const Format& format, const Ops& ops) : format_(format), ops_(ops) {}

  std::string spec() const override { return std::string(format_.name); }
  std::uint16_t wire_id() const override { return format_.wire_id; }
  std::size_t max_bytes(std::size_t elements) const override {
    return elements * sizeof(std::uint16_t);
  }
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
    const internal::Feedback feedback(prepare, v);
    return encode_runs(v, &feedback, out);
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  /// `feedback`, where it is given, is of x.
  std::optional<std::size_t> encode_runs(std::span<const float> x,
                                         const internal::Feedback* feedback,
                                         std::span<std::byte> out);

  const Format& format_;
  const Ops& ops_;
  std::size_t saturated_ = 0;
};

std::optional<std::size_t> HalfCompressor::encode_runs(std::span<const float> x,
                                                       const internal::Feedback* feedback,
                                                       std::span<std::byte> out) {
  ByteWriter writer(out);
  std::array<std::uint16_t, kStage> stage;
  saturated_ = 0;
  for (std::size_t first = 0; first < x.size(); first += kStage) {
    const auto run = x.subspan(first, std::min(kStage, x.size() - first));
    if (feedback != nullptr && !feedback->prepare(first, run.size())) {
      return std::nullopt;
    }
    const auto bits = std::span(stage).first(run.size());
    saturated_ += (ops_.*format_.narrow)(run, bits);
    if (feedback != nullptr) {
      (ops_.*format_.axpy)(-1, bits, feedback->piece(first, run.size()));
    }
    writer.write_bytes(std::as_bytes(bits));
  }
  return writer.position();
}

Status HalfCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                  std::span<float> y) const {
  if (auto status = internal::check_length(format_.name, bytes.size(), max_bytes(y.size()));
      !status) {
    return status;
  }
  std::size_t bad = 0;
  internal::for_each_run<std::uint16_t>(
      bytes, [&](std::span<const std::uint16_t> run, std::size_t /*first*/) {
        for (const std::uint16_t bits : run) {
          bad += static_cast<std::size_t>((bits & format_.exponent_mask) == format_.exponent_mask);
        }
      });
  if (bad > 0) {
    return internal::non_finite(
        fmt::format("{}: {} of {} elements are not finite", format_.name, bad, y.size()));
  }
  internal::for_each_run<std::uint16_t>(
      bytes, [&](std::span<const std::uint16_t> run, std::size_t first) {
        (ops_.*format_.axpy)(scale, run, y.subspan(first, run.size()));
      });
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
