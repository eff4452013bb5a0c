#include "option_checks.h"

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr int kMostDecodings = 1000;

}  // namespace

void validate(const SimulatorOptions& options, std::size_t n, std::size_t hosts) {
  if (n == 0 || n > hosts) {
    refuse("nodes", fmt::format("{}", n),
           fmt::format("there must be one at least, and the platform has {} hosts", hosts));
  }
  if (options.nodes.size() != 1 && options.nodes.size() != n) {
    refuse("nodes", fmt::format("{}", options.nodes.size()),
           fmt::format("give one for all, or one for each of the {} nodes", n));
  }
  for (const NodeSpec& node : options.nodes) {
    validate(node.compute);
    const CodecCost& codec = node.codec;
    for (const double cost :
         {codec.encode_s_per_byte, codec.decode_s_per_byte, codec.seconds_per_exchange}) {
      if (!(cost >= 0 && cost <= 1e6)) {
        refuse("codec", fmt::format("{}", cost), "it must be 0 to 10⁶ seconds");
      }
    }
    if (codec.first_phase_decodings < 1 || codec.first_phase_decodings > kMostDecodings) {
      refuse("first_phase_decodings", fmt::format("{}", codec.first_phase_decodings),
             fmt::format("a frame is decoded 1 to {} times", kMostDecodings));
    }
    if (!(node.flops_per_second >= 0 && node.flops_per_second <= 1e30)) {
      refuse("flops_per_second", fmt::format("{}", node.flops_per_second),
             "it must be 0 to 10³⁰, where 0 leaves the work out");
    }
    if (node.start < 0) {
      refuse("start", fmt::format("{} ns", node.start), "it must be 0 or more");
    }
  }
  for (const NodeEvent& event : options.events) {
    if (event.node < 0 || static_cast<std::size_t>(event.node) >= n || event.at < 0) {
      refuse("events", fmt::format("node {} at {} ns", event.node, event.at),
             fmt::format("nodes are 0 … {}, and time begins at 0", n - 1));
    }
  }
  if (!options.availability.empty() && options.availability.size() != n) {
    refuse("availability", fmt::format("{}", options.availability.size()),
           fmt::format("give none, or one for each of the {} nodes", n));
  }
  for (const NodeAvailability& one : options.availability) {
    if (one.times != nullptr) {
      validate(*one.times);
    }
    if (one.start < 0) {
      refuse("availability.start", fmt::format("{} ns", one.start), "it must be 0 or more");
    }
  }
  if (options.timeout <= 0) {
    refuse("timeout", fmt::format("{} ns", options.timeout), "it must be positive");
  }
  if (options.threads < 1) {
    refuse("threads", fmt::format("{}", options.threads), "there must be at least one");
  }
}

}  // namespace sotto
