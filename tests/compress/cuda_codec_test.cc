// Codecs on a CUDA device against the compressors, byte for byte, where there is one.
#include <doctest/doctest.h>

#include "support/skip.h"

#ifdef SOTTO_HAVE_CUDA
#include <sotto/compress/cuda/codec.h>
#include <sotto/kernels/cuda/memory.h>

#include "compress/device_cases.h"
#endif

namespace sotto::test::cuda_codec_test {

#ifdef SOTTO_HAVE_CUDA

using namespace sotto_test;

namespace {

constexpr std::byte kGuardByte{0xA5};

/// Memory on the device for one case, all guards but for what is placed.
class Bench {
 public:
  Bench() : memory_(kBytes) {}

  /// All guards again.
  void clear() {
    const std::vector<std::byte> guards(used_ + kGuard, kGuardByte);
    cuda::copy_to_device(guards, memory_.bytes().first(guards.size()));
    used_ = 0;
    places_.clear();
  }
  template <typename T>
  std::span<T> place(std::size_t count, std::size_t offset) {
    const std::size_t begin = (used_ + kGuard) / kLine * kLine + kLine + offset * sizeof(T);
    used_ = begin + count * sizeof(T);
    REQUIRE(used_ + kGuard <= kBytes);
    places_.push_back({begin, used_});
    return memory_.as<T>(begin, count);
  }
  /// Waits; whether nothing was written but to what was placed.
  bool intact() {
    const Status status = cuda::synchronize();
    REQUIRE_MESSAGE(status.ok(), status.message());
    std::vector<std::byte> all(used_ + kGuard);
    cuda::copy_to_host(memory_.bytes().first(all.size()), all);
    for (const auto& [begin, end] : places_) {
      std::fill(all.begin() + static_cast<std::ptrdiff_t>(begin),
                all.begin() + static_cast<std::ptrdiff_t>(end), kGuardByte);
    }
    return std::ranges::all_of(all, [](std::byte byte) { return byte == kGuardByte; });
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{4} << 20U;
  static constexpr std::size_t kGuard = 64;
  static constexpr std::size_t kLine = 256;

  cuda::Memory memory_;
  std::size_t used_ = kBytes - kGuard;
  std::vector<std::pair<std::size_t, std::size_t>> places_;
};

/// Memory of which each part is an allocation of its own, for compute-sanitizer, which then
/// sees what is read or written beyond.
class Allotments {
 public:
  void clear() { memory_.clear(); }
  template <typename T>
  std::span<T> place(std::size_t count, std::size_t offset) {
    memory_.emplace_back((offset + count) * sizeof(T));
    return memory_.back().as<T>(offset * sizeof(T), count);
  }
  /// Waits; what is written elsewhere is the sanitizer's to see.
  bool intact() {
    const Status status = cuda::synchronize();
    REQUIRE_MESSAGE(status.ok(), status.message());
    return true;
  }

 private:
  std::vector<cuda::Memory> memory_;
};

/// The values, on the device.
template <typename Places>
std::span<float> placed(Places& places, const std::vector<float>& values, std::size_t offset) {
  const auto device = places.template place<float>(values.size(), offset);
  cuda::copy_to_device(std::as_bytes(std::span(values)), std::as_writable_bytes(device));
  return device;
}

template <typename T>
std::vector<std::remove_const_t<T>> fetched(std::span<T> device) {
  std::vector<std::remove_const_t<T>> host(device.size());
  cuda::copy_to_host(std::as_bytes(device), std::as_writable_bytes(std::span(host)));
  return host;
}

template <typename Places>
void hold_to_compressor(Places& bench, const std::string& spec, const NamedVector& vector,
                        std::size_t offset) {
  const std::size_t n = vector.values.size();
  INFO("spec ", spec, ", vector ", vector.name, ", length ", n, ", offset ", offset);
  const auto compressor = make_compressor(spec);
  const cuda::Codec codec(spec);
  REQUIRE(codec.spec() == compressor->spec());
  REQUIRE(codec.bytes(n) == compressor->max_bytes(n));
  const RandomKey key = key_of(n + offset);
  std::vector<float> e(vector.values);
  std::ranges::for_each(e, [](float& value) { value *= 0.5F; });
  std::vector<float> sum(e);
  host_ops().axpy(1.0F, vector.values, sum);

  bench.clear();
  const auto x = placed(bench, vector.values, offset % 4);
  const auto residual = placed(bench, e, offset % 3);
  const auto y = placed(bench, vector.values, offset % 2);
  const auto out = bench.template place<std::byte>(codec.bytes(n), offset);
  const auto again = bench.template place<std::byte>(codec.bytes(n), offset / 2);
  const auto work = bench.template place<std::byte>(codec.workspace(n), 0);
  const auto outcomes = bench.template place<cuda::Outcome>(3, 0);
  codec.encode(x, key, out, work, &outcomes[0], nullptr);
  codec.encode_residual(x, residual, key, again, work, &outcomes[1], nullptr);
  REQUIRE(codec.decode_add(out, -0.37F, y, &outcomes[2], nullptr).ok());
  REQUIRE(bench.intact());
  const std::vector<cuda::Outcome> found = fetched(outcomes);

  const std::vector<std::byte> expected = encoded(*compressor, vector.values, key);
  REQUIRE(found[0].fault == cuda::Outcome::kSound);
  REQUIRE(found[0].saturated == compressor->saturated());
  REQUIRE(fetched(out) == expected);
  std::vector<float> mixed(vector.values);
  REQUIRE(compressor->decode_add(expected, -0.37F, mixed).ok());
  REQUIRE(found[2].fault == cuda::Outcome::kSound);
  REQUIRE(same_bits(fetched(y), mixed));
  if (!all_finite(sum)) {
    REQUIRE(found[1].status().fault() == Fault::non_finite);
    return;
  }
  std::vector<std::byte> frame(expected.size());
  compressor->encode_residual(sum, key, frame);
  REQUIRE(found[1].fault == cuda::Outcome::kSound);
  REQUIRE(found[1].saturated == compressor->saturated());
  REQUIRE(fetched(again) == frame);
  REQUIRE(same_bits(fetched(residual), sum));
}

}  // namespace

TEST_CASE("codecs on a CUDA device leave the compressors' bytes") {
  if (const Status status = cuda::device_status(); !status.ok()) {
    SOTTO_SKIP(status.message());
  }
  Bench bench;
  const std::vector<NamedVector> vectors = device_vectors();
  for (const std::string& spec : device_specs()) {
    std::size_t turn = 0;
    for (const NamedVector& vector : vectors) {
      hold_to_compressor(bench, spec, vector, turn++ % 17);
    }
  }
}

TEST_CASE("codecs on a CUDA device read and write nothing beyond their vectors and frames") {
  if (const Status status = cuda::device_status(); !status.ok()) {
    SOTTO_SKIP(status.message());
  }
  Allotments allotments;
  for (const std::string& spec : device_specs()) {
    std::size_t turn = 0;
    for (const std::size_t length : {1U, 65U, 4097U, 25000U}) {
      hold_to_compressor(allotments, spec, {"gaussian", gaussian(length)}, 5 * turn++);
    }
  }
}

TEST_CASE("codecs on a CUDA device leave the compressors' bytes of long vectors") {
  if (const Status status = cuda::device_status(); !status.ok()) {
    SOTTO_SKIP(status.message());
  }
  constexpr std::size_t kMany = 3'000'001;
  for (const std::string spec :
       {"sign", "sign,chunk=0", "quant:8", "quant:4", "quant:8,chunk=0", "fp16", "none"}) {
    INFO("spec ", spec);
    std::vector<float> x = gaussian(kMany);
    const auto compressor = make_compressor(spec);
    const cuda::Codec codec(spec);
    const cuda::Memory memory(std::size_t{64} << 20U);
    const auto device = memory.as<float>(0, kMany);
    cuda::copy_to_device(std::as_bytes(std::span(x)), std::as_writable_bytes(device));
    const auto out = memory.bytes().subspan((std::size_t{16} << 20U) + 5, codec.bytes(kMany));
    const auto work = memory.bytes().subspan(std::size_t{32} << 20U, codec.workspace(kMany));
    auto* outcome = memory.as<cuda::Outcome>(std::size_t{48} << 20U, 1).data();
    codec.encode_residual({}, device, key_of(9), out, work, outcome, nullptr);
    std::vector<std::byte> frame(codec.bytes(kMany));
    compressor->encode_residual(x, key_of(9), frame);
    CHECK(fetched(out) == frame);
    CHECK(same_bits(fetched(device), x));
  }
}

TEST_CASE("codecs on a CUDA device refuse bad encodings and leave y alone") {
  if (const Status status = cuda::device_status(); !status.ok()) {
    SOTTO_SKIP(status.message());
  }
  constexpr std::size_t kElements = 5000;
  const cuda::Memory memory(std::size_t{1} << 20U);
  const auto y = memory.as<float>(0, kElements);
  auto* outcome = memory.as<cuda::Outcome>(std::size_t{1} << 19U, 1).data();
  const std::vector<float> before(kElements, 1.0F);
  for (const std::string& spec : device_specs()) {
    INFO("spec ", spec);
    const auto compressor = make_compressor(spec);
    const cuda::Codec codec(spec);
    const std::vector<std::byte> sound = encoded(*compressor, gaussian(kElements), key_of(1));
    const auto bytes = memory.bytes().subspan((std::size_t{1} << 18U) + 3, sound.size());
    for (std::size_t place = 0; place < 64; ++place) {
      std::vector<std::byte> bad = sound;
      bad[place] = bad[place + 1] = std::byte{0xFF};
      std::vector<float> expected(before);
      const Status status = compressor->decode_add(bad, 0.5F, expected);
      cuda::copy_to_device(bad, bytes);
      cuda::copy_to_device(std::as_bytes(std::span(before)), std::as_writable_bytes(y));
      REQUIRE(codec.decode_add(bytes, 0.5F, y, outcome, nullptr).ok());
      INFO("place ", place);
      REQUIRE(same_bits(fetched(y), expected));
      REQUIRE(fetched(std::span(outcome, 1))[0].status().fault() == status.fault());
    }
    CHECK(codec.decode_add(bytes.first(3), 0.5F, y, outcome, nullptr).fault() == Fault::malformed);
  }
}

#else

TEST_CASE("codecs on a CUDA device leave the compressors' bytes") {
  SOTTO_SKIP("built without CUDA (no nvcc was found)");
}

#endif

}  // namespace sotto::test::cuda_codec_test
