// The codecs of CUDA devices, their threads run one after the other on this host: byte for byte the
// encodings, residuals and sums of the compressors. What is not covered is only what a device does
// by itself: launches, and that its threads wait for each other.
#include <optional>
#include <variant>

#include <sotto/base/error.h>
#include <sotto/compress/cuda/forms.h>

#include "compress/device_cases.h"

namespace sotto::test::cuda_passes_test {

using namespace sotto_test;

namespace {

/// A codec of a CUDA device without the device, as compress/cuda/codec.cu goes about it.
class EmulatedCodec {
 public:
  EmulatedCodec(std::string_view spec, std::uint32_t threads)
      : form_(cuda::choose_form(make_compressor(spec)->spec())), block_(threads) {}

  std::size_t bytes(std::size_t elements) const {
    return visit(elements, [&](const auto& format, const auto& layout) {
      using Coder = typename std::decay_t<decltype(format)>::Coder;
      return layout.scale_at(layout.chunks.count()) +
             (Coder::kBytes == 1 ? layout.chunks.total_code_bytes() : elements * Coder::kBytes);
    });
  }

  /// `residual` says whether v is to be replaced by it.
  cuda::Outcome encode(std::span<const float> x, std::span<float> v, bool residual,
                       const RandomKey& key, std::span<std::byte> out) const {
    cuda::Outcome outcome;
    cuda::EncodeTask task;
    task.from = v.data();
    task.more = residual && !x.empty() ? x.data() : nullptr;
    task.residual = residual ? v.data() : nullptr;
    task.key = key;
    task.out = out.data();
    task.outcome = &outcome;
    visit(v.size(), [&](const auto& format, const auto& layout) {
      encode_form(format, layout, task);
      return 0;
    });
    return outcome;
  }

  cuda::Outcome decode(std::span<const std::byte> bytes, float scale, std::span<float> y) const {
    cuda::Outcome outcome;
    visit(y.size(), [&](const auto& format, const auto& layout) {
      decode_form(format, layout, bytes.data(), scale, y.data(), outcome);
      return 0;
    });
    return outcome;
  }

 private:
  template <typename Visit>
  std::size_t visit(std::size_t elements, const Visit& visit) const {
    return std::visit(
        [&](const auto& format) -> std::size_t {
          return static_cast<std::size_t>(visit(format, cuda::layout_of(form_, format, elements)));
        },
        form_.format);
  }

  template <typename Format>
  void encode_form(const Format& format, const cuda::Layout<Format>& layout,
                   cuda::EncodeTask task) const {
    std::vector<cuda::FourWords> room(
        cuda::encode_room(format, layout.tile) / sizeof(cuda::FourWords) + 1);
    auto* memory = reinterpret_cast<std::byte*>(room.data());
    std::copy_n(layout.prefix, layout.prefix_size, task.out);
    std::vector<typename Format::Scale> scales(layout.chunks.count());
    const typename Format::Scale* given = nullptr;
    if constexpr (Format::kMeasured) {
      if (!layout.whole()) {
        std::vector<typename Format::Part> parts(layout.tiles());
        for (std::size_t tile = 0; tile < layout.tiles(); ++tile) {
          cuda::measure_tile(block_, format, layout, task, parts.data(), tile, memory);
        }
        if (task.residual != nullptr) {
          task.from = task.residual;
          task.more = nullptr;
        }
        for (std::size_t chunk = 0; chunk < layout.chunks.count(); ++chunk) {
          cuda::settle_chunk(format, layout, task, parts.data(), scales.data(), chunk);
        }
        given = scales.data();
      }
    }
    for (std::size_t tile = 0; tile < layout.tiles(); ++tile) {
      cuda::encode_tile(block_, format, layout, task, given, tile, memory);
    }
  }

  template <typename Format>
  void decode_form(const Format& format, const cuda::Layout<Format>& layout, const std::byte* bytes,
                   float scale, float* y, cuda::Outcome& outcome) const {
    const auto coder = format.coder(typename Format::Scale{});
    std::vector<cuda::FourWords> room(
        cuda::tile_room_bytes(coder, layout.tile, false) / sizeof(cuda::FourWords) + 1);
    auto* memory = reinterpret_cast<std::byte*>(room.data());
    if constexpr (requires { coder.finite(0U); }) {
      for (std::size_t tile = 0; tile < layout.tiles(); ++tile) {
        cuda::judge_tile(block_, format, layout, bytes, tile, &outcome, memory);
      }
    } else {
      for (std::size_t chunk = 0; chunk < std::max<std::size_t>(layout.chunks.count(), 1);
           ++chunk) {
        cuda::judge_chunk(format, layout, bytes, chunk, &outcome);
      }
    }
    for (std::size_t tile = 0; outcome.fault == cuda::Outcome::kSound && tile < layout.tiles();
         ++tile) {
      cuda::decode_tile(block_, format, layout, bytes, scale, y, tile, memory);
    }
  }

  cuda::ChosenForm form_;
  cuda::HostBlock block_;
};

/// `count` of T at an address `offset` elements behind a multiple of 64, and a guard behind them.
template <typename T>
class Placed {
 public:
  Placed(std::size_t count, std::size_t offset) : room_(count * sizeof(T) / 64 + 3) {
    T* begin = reinterpret_cast<T*>(room_.data()) + offset;
    span_ = {begin, count};
    std::ranges::fill(bytes(), std::byte{0xA5});
  }
  Placed(std::span<const T> values, std::size_t offset) : Placed(values.size(), offset) {
    std::ranges::copy(values, span_.begin());
  }
  std::span<T> span() const { return span_; }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(room_)); }
  /// Whether all outside the span is as it was.
  bool intact() {
    const auto whole = bytes();
    const auto mine = std::as_bytes(span_);
    return std::ranges::all_of(whole, [&](const std::byte& byte) {
      return (&byte >= mine.data() && &byte < mine.data() + mine.size()) || byte == std::byte{0xA5};
    });
  }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  std::vector<Line> room_;
  std::span<T> span_;
};

void hold_to_compressor(const std::string& spec, const NamedVector& vector, std::size_t offset,
                        std::uint32_t threads) {
  const std::size_t n = vector.values.size();
  INFO("spec ", spec, ", vector ", vector.name, ", length ", n, ", offset ", offset);
  const auto compressor = make_compressor(spec);
  const EmulatedCodec codec(spec, threads);
  REQUIRE(codec.bytes(n) == compressor->max_bytes(n));
  const RandomKey key = key_of(n + offset);
  const std::vector<std::byte> expected = encoded(*compressor, vector.values, key);
  Placed<float> x(std::span(vector.values), offset % 4);
  Placed<std::byte> out(expected.size(), offset);
  cuda::Outcome outcome = codec.encode({}, x.span(), false, key, out.span());
  REQUIRE(std::ranges::equal(out.span(), expected));
  REQUIRE(outcome.saturated == compressor->saturated());
  REQUIRE(outcome.fault == cuda::Outcome::kSound);
  REQUIRE(same_bits(x.span(), vector.values));
  REQUIRE(out.intact());

  // Error feedback of x on e = x / 2.
  std::vector<float> e(vector.values);
  std::ranges::for_each(e, [](float& value) { value *= 0.5F; });
  Placed<float> residual(std::span<const float>(e), offset % 3);
  std::vector<float> sum(e);
  host_ops().axpy(1.0F, vector.values, sum);
  if (!all_finite(sum)) {
    outcome = codec.encode(x.span(), residual.span(), true, key, out.span());
    REQUIRE((outcome.fault & 0xFFU) == static_cast<std::uint64_t>(Fault::non_finite));
    return;
  }
  std::vector<std::byte> frame(expected.size());
  compressor->encode_residual(sum, key, frame);
  outcome = codec.encode(x.span(), residual.span(), true, key, out.span());
  REQUIRE(std::ranges::equal(out.span(), frame));
  REQUIRE(same_bits(residual.span(), sum));
  REQUIRE(outcome.saturated == compressor->saturated());
  REQUIRE(residual.intact());

  std::vector<float> y(vector.values);
  REQUIRE(compressor->decode_add(frame, -0.37F, y).ok());
  outcome = codec.decode(out.span(), -0.37F, x.span());
  REQUIRE(outcome.fault == cuda::Outcome::kSound);
  REQUIRE(same_bits(x.span(), y));
  REQUIRE(x.intact());
  REQUIRE(out.intact());
}

}  // namespace

TEST_CASE("codecs of CUDA devices leave the compressors' bytes") {
  const std::vector<NamedVector> vectors = device_vectors();
  for (const std::string& spec : device_specs()) {
    std::size_t turn = 0;
    for (const NamedVector& vector : vectors) {
      // Other offsets and numbers of threads each time.
      hold_to_compressor(spec, vector, turn % 17, turn % 2 == 0 ? 64 : 256);
      ++turn;
    }
  }
}

TEST_CASE("codecs of CUDA devices refuse what the compressors refuse, and leave y alone") {
  constexpr std::size_t kElements = 1000;
  RandomStream stream({.seed = 5});
  for (const std::string& spec : device_specs()) {
    INFO("spec ", spec);
    const auto compressor = make_compressor(spec);
    const EmulatedCodec codec(spec, 64);
    const std::vector<std::byte> sound = encoded(*compressor, gaussian(kElements), key_of(1));
    for (std::size_t turn = 0; turn < 400; ++turn) {
      std::vector<std::byte> bytes = sound;
      // Most of what can be wrong is in front: header and scales.
      const std::size_t place = turn < 100 ? turn % bytes.size() : stream.below(bytes.size());
      bytes[place] = static_cast<std::byte>(stream.next_u32());
      if (turn % 3 == 0) {
        bytes[place] = std::byte{0xFF};
      }
      std::vector<float> expected(kElements, 1.0F);
      std::vector<float> found(kElements, 1.0F);
      const Status status = compressor->decode_add(bytes, 0.5F, expected);
      const cuda::Outcome outcome = codec.decode(bytes, 0.5F, found);
      INFO("place ", place, ", ", status.message());
      REQUIRE((outcome.fault == cuda::Outcome::kSound) == status.ok());
      if (!status.ok()) {
        REQUIRE(static_cast<Fault>(outcome.fault & 0xFFU) == status.fault());
      }
      REQUIRE(same_bits(found, expected));
    }
  }
}

TEST_CASE("a codec of a CUDA device says where a vector is not finite") {
  for (const std::string& spec : device_specs()) {
    const EmulatedCodec codec(spec, 64);
    std::vector<float> x = gaussian(9000);
    x[8500] = std::numeric_limits<float>::infinity();
    x[5001] = std::numeric_limits<float>::quiet_NaN();
    std::vector<std::byte> out(codec.bytes(x.size()));
    const cuda::Outcome outcome = codec.encode({}, x, true, key_of(0), out);
    CHECK(outcome.fault == cuda::fault_at(5001, Fault::non_finite));
  }
}

TEST_CASE("the families that devices have codecs for are those whose specifications are taken") {
  for (const CompressorInfo& info : compressors()) {
    CAPTURE(info.name);
    const std::string spec = make_compressor(info.example)->spec();
    if (cuda::has_codec(info.name)) {
      CHECK_NOTHROW(cuda::choose_form(spec));
    } else {
      CHECK_THROWS_AS(cuda::choose_form(spec), Error);
    }
  }
  CHECK(cuda::has_codec("sign"));
  CHECK_FALSE(cuda::has_codec("sig"));
}

TEST_CASE("what CUDA devices have no codec for is refused with what would do") {
  for (const char* spec : {"topk:0.1", "randk:0.1", "outlier:4", "lowrank:2"}) {
    CHECK_THROWS_WITH_AS(cuda::choose_form(make_compressor(spec)->spec()),
                         doctest::Contains("none, fp16, bf16, quant, grid or sign would do"),
                         Error);
  }
}

}  // namespace sotto::test::cuda_passes_test
