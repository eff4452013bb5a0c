#include <sotto/compress/none.h>

#include <fmt/format.h>

#include "internal/chunked.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/payload.h"
#include "internal/shares.h"

namespace sotto {
namespace {

constexpr std::size_t kFloatBytes = sizeof(float);

Status judged(const NonFinite& bad, std::size_t elements) {
  return bad.count == 0 ? Status()
                        : internal::non_finite(
                              fmt::format("none: {} of {} elements are not finite, first at {}",
                                          bad.count, elements, bad.first));
}

class NoneCompressor final : public internal::ChunkedCompressor {
 public:
  explicit NoneCompressor(const Ops& ops) : ChunkedCompressor(ops) {}

  std::string spec() const override { return "none"; }
  std::uint16_t wire_id() const override { return kNoneWireId; }
  std::size_t max_bytes(std::size_t elements) const override { return elements * sizeof(float); }
  Contract contract(std::size_t /*elements*/) const override { return internal::exact_contract(); }
  std::unique_ptr<Compressor> clone() const override { return make_none(ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    internal::Shares::of_elements(workers(), x.size())
        .each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
          const auto part = x.subspan(begin, end - begin);
          ops_.to_host(part, out.subspan(begin * kFloatBytes, part.size_bytes()));
        });
    return x.size_bytes();
  }

  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    const auto take = [&](std::size_t first, std::span<float> run, const Soon& /*soon*/) {
      ops_.to_host(run, out.subspan(first * kFloatBytes, run.size_bytes()));
      ops_.fill(0, run);
      add_piece(prepare, out, v.size(), first, run.size());
    };
    const bool done = internal::Shares::of_elements(workers(), v.size())
                          .all([&](std::size_t begin, std::size_t end) {
                            internal::Feedback feedback(prepare, v, begin, end);
                            return feedback.reduce(begin, end - begin, take);
                          });
    return done ? std::optional(v.size_bytes()) : std::nullopt;
  }

 private:
  Status verify(std::span<const std::byte> bytes, std::size_t elements) const override {
    if (auto status = internal::check_length("none", bytes.size(), max_bytes(elements));
        !status.ok()) {
      return status;
    }
    const bool sound = internal::Shares::of_elements(workers(), elements)
                           .all([&](std::size_t begin, std::size_t end) {
                             const auto part =
                                 bytes.subspan(begin * kFloatBytes, (end - begin) * kFloatBytes);
                             return ops_.fp32_non_finite(part).count == 0;
                           });
    return sound ? Status() : judged(ops_.fp32_non_finite(bytes), elements);
  }
  void add(std::span<const std::byte> bytes, std::size_t /*elements*/, std::size_t first,
           float scale, std::span<float> y) const override {
    ops_.fp32_axpy(scale, bytes.subspan(first * kFloatBytes, y.size() * kFloatBytes), y);
  }
  std::size_t chunk_length(std::size_t elements) const override { return elements; }
};

}  // namespace

Status decode_none(std::span<const std::byte> bytes, std::span<float> y, const Ops& ops) {
  if (auto status = internal::check_length("none", bytes.size(), y.size_bytes()); !status.ok()) {
    return status;
  }
  ops.from_host(bytes, y);
  return judged(ops.count_non_finite(y), y.size());
}

std::unique_ptr<Compressor> make_none(const Ops& ops) {
  return std::make_unique<NoneCompressor>(ops);
}

namespace {

std::unique_ptr<Compressor> build_none(internal::SpecReader& /*spec*/,
                                       const internal::Wanted& wanted) {
  return make_none(wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kNoneFamily = {
    {"none", "none", "float32 as it is", "exact: meets every contract", "none", kNoneWireId},
    build_none};

}  // namespace sotto
