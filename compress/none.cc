#include <sotto/compress/none.h>

#include <cstring>

#include <fmt/format.h>

#include "internal/contracts.h"
#include "internal/payload.h"

namespace sotto {
namespace {

class NoneCompressor final : public Compressor {
 public:
  explicit NoneCompressor(const Ops& ops) : ops_(ops) {}

  std::string spec() const override { return "none"; }
  std::uint16_t wire_id() const override { return kNoneWireId; }
  std::size_t max_bytes(std::size_t elements) const override { return elements * sizeof(float); }
  Contract contract(std::size_t /*elements*/) const override { return internal::exact_contract(); }
  std::unique_ptr<Compressor> clone() const override { return make_none(ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    ByteWriter(out).write_bytes(std::as_bytes(x));
    return x.size_bytes();
  }

  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override {
    if (auto status = internal::check_length("none", bytes.size(), max_bytes(y.size())); !status) {
      return status;
    }
    NonFinite bad;
    internal::for_each_run<float>(bytes, [&](std::span<const float> run, std::size_t first) {
      const NonFinite found = ops_.count_non_finite(run);
      if (bad.count == 0 && found.count > 0) {
        bad.first = first + found.first;
      }
      bad.count += found.count;
    });
    if (bad.count > 0) {
      return internal::non_finite(fmt::format("none: {} of {} elements are not finite, first at {}",
                                              bad.count, y.size(), bad.first));
    }
    internal::for_each_run<float>(bytes, [&](std::span<const float> run, std::size_t first) {
      ops_.axpy(scale, run, y.subspan(first, run.size()));
    });
    return {};
  }

 private:
  const Ops& ops_;
};

}  // namespace

std::unique_ptr<Compressor> make_none(const Ops& ops) {
  return std::make_unique<NoneCompressor>(ops);
}

}  // namespace sotto
