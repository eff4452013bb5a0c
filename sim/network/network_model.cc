#include <sotto/sim/network/network_model.h>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

void require(bool holds, const char* field, double value, const char* reason) {
  if (!holds) {
    refuse(field, fmt::format("{}", value), reason);
  }
}

}  // namespace

void validate(const NetworkModel& model) {
  constexpr const char* kPositive = "it must be positive and finite";
  const auto positive = [](double value) { return value > 0 && value < kUnlimited; };
  require(positive(model.latency_factor), "latency factor", model.latency_factor, kPositive);
  require(positive(model.bandwidth_factor), "bandwidth factor", model.bandwidth_factor, kPositive);
  require(positive(model.segment_bytes), "segment size", model.segment_bytes, kPositive);
  require(model.window_bytes > 0, "window", model.window_bytes, "it must be positive");
  require(model.initial_window_bytes > 0, "initial window", model.initial_window_bytes,
          "it must be positive");
  require(model.weight_bytes >= 0 && model.weight_bytes < kUnlimited, "weight S",
          model.weight_bytes, "it must be 0 or more");
  require(model.packet_bytes >= 0 && model.packet_bytes < kUnlimited, "packet size",
          model.packet_bytes, "it must be 0 or more");
  require(model.crosstraffic >= 0 && model.crosstraffic <= 1, "crosstraffic", model.crosstraffic,
          "it must lie in 0 … 1");
  require(model.acknowledgements >= 0 && model.acknowledgements <= kMostAcknowledgements,
          "acknowledgements", model.acknowledgements, "they must lie in 0 … 0.1");
}

}  // namespace sotto
