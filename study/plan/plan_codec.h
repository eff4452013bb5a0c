// How fast compressors encode and decode, for plans: as the scenario declares it, as the user says,
// or measured here. One thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {

/// Seconds for each byte of the float32 vector that a frame encodes; 0: no time.
struct CodecSpeed {
  double encode_s_per_byte = 0;
  double decode_s_per_byte = 0;
};

/// Tells how fast compressors are; measures each of them once.
class CodecMeter {
 public:
  /// `words`: a bandwidth, "none" for no time, "measure" for this machine, or empty for what the
  /// scenario declares, which is measured where it declares nothing. Throws Error.
  CodecMeter(const std::string& words, const Scenario& scenario);

  bool measures() const { return measures_; }
  /// The speed of this compressor on frames of a model of `elements` elements.
  CodecSpeed speed_of(const std::string& compressor, std::size_t elements);
  /// Gives the nodes of a scenario this speed, unless its own holds.
  void apply(const CodecSpeed& speed, Scenario& scenario) const;

 private:
  bool declared_ = false;
  bool measures_ = false;
  CodecSpeed fixed_;
  std::map<std::pair<std::string, std::size_t>, CodecSpeed> measured_;
};

}  // namespace sotto::study
