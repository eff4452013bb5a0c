#include "plan_codec.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>
#include <sotto/compress/error_feedback.h>
#include <sotto/compress/registry.h>

#include "quantity.h"

namespace sotto::cli {
namespace {

/// Longer models are measured by a part of this length.
constexpr std::size_t kMostElements = std::size_t{1} << 20U;
/// The fastest of so many counts.
constexpr int kRepeats = 5;

template <typename Call>
double fastest(const Call& call) {
  double best = std::numeric_limits<double>::infinity();
  for (int k = 0; k < kRepeats; ++k) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

CodecSpeed measure(const std::string& spec, std::size_t elements) {
  elements = std::min(elements, kMostElements);
  std::vector<float> x(elements);
  RandomStream stream({.seed = 0, .purpose = Purpose::measure});
  for (float& value : x) {
    value = static_cast<float>(stream.normal());
  }
  ErrorFeedback feedback(make_compressor(spec), x.size(), host_ops());
  std::vector<std::byte> frame(feedback.compressor().max_bytes(x.size()));
  RandomKey key{.seed = 0, .purpose = Purpose::quantize};
  std::size_t used = 0;
  const double encode_s = fastest([&] {
    used = feedback.encode(x, key, frame);
    ++key.round;
  });
  const double decode_s = fastest([&] {
    const auto encoding = std::span<const std::byte>(frame).first(used);
    check(feedback.compressor().decode_add(encoding, 0.25F, x).ok(), "an own encoding decodes");
  });
  const auto bytes = static_cast<double>(std::max<std::size_t>(used, 1));
  return {encode_s / bytes, decode_s / bytes};
}

}  // namespace

CodecMeter::CodecMeter(const std::string& words, const Scenario& scenario) {
  const CodecCost& own = scenario.paces.front().codec;
  declared_ = words.empty() && own.encode_s_per_byte > 0;
  if (declared_) {
    fixed_ = {own.encode_s_per_byte, own.decode_s_per_byte};
  } else if (words.empty() || words == "measure") {
    measures_ = true;
  } else if (words != "none") {
    const double seconds = 1 / parse_bandwidth(words);
    fixed_ = {seconds, seconds};
  }
}

CodecSpeed CodecMeter::speed_of(const std::string& compressor, std::size_t elements) {
  if (!measures_) {
    return fixed_;
  }
  const auto [entry, added] = measured_.try_emplace({compressor, elements});
  if (added) {
    entry->second = measure(compressor, elements);
  }
  return entry->second;
}

void CodecMeter::apply(const CodecSpeed& speed, Scenario& scenario) const {
  for (std::size_t k = 0; !declared_ && k < scenario.paces.size(); ++k) {
    scenario.paces[k].codec = {.encode_s_per_byte = speed.encode_s_per_byte,
                               .decode_s_per_byte = speed.decode_s_per_byte};
  }
}

}  // namespace sotto::cli
