#include <sotto/study/plan/plan_codec.h>

#include <algorithm>
#include <vector>

#include <sotto/base/error.h>
#include <sotto/study/units.h>

#include <sotto/study/measure/codec_timing.h>

namespace sotto::study {
namespace {

/// Longer models are measured by a part of this length.
constexpr std::size_t kMostElements = std::size_t{1} << 20U;
/// The fastest of this many timings counts.
constexpr int kRepeats = 5;

CodecSpeed measure(const std::string& spec, std::size_t elements) {
  const auto x = normal_values(std::min(elements, kMostElements), 0);
  std::vector<float> y(x.size());
  const CodecTiming timing = time_codec(spec, x, y, 0, kRepeats);
  const auto bytes = static_cast<double>(std::max<std::size_t>(x.size(), 1) * sizeof(float));
  return {timing.encode.fastest / bytes, timing.decode_mix.fastest / bytes};
}

double parse_speed(const std::string& words) {
  try {
    return parse_bandwidth(words);
  } catch (const Error&) {
    refuse("codec", words, "give a speed, e.g. \"1 GB/s\", or none, or measure");
  }
}

}  // namespace

CodecMeter::CodecMeter(const std::string& words, const Scenario& scenario) {
  const CodecCost& own = scenario.node_specs.front().codec;
  declared_ = words.empty() && own.encode_s_per_byte > 0;
  if (declared_) {
    fixed_ = {own.encode_s_per_byte, own.decode_s_per_byte};
  } else if (words.empty() || words == "measure") {
    measures_ = true;
  } else if (words != "none") {
    const double seconds = 1 / parse_speed(words);
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
  if (declared_) {
    return;
  }
  for (NodeSpec& node : scenario.node_specs) {
    node.codec.encode_s_per_byte = speed.encode_s_per_byte;
    node.codec.decode_s_per_byte = speed.decode_s_per_byte;
  }
}

}  // namespace sotto::study
