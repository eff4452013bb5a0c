#include <sotto/optim/streaming.h>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/optim/algorithm.h>

namespace sotto {
namespace {

constexpr std::string_view kCarry = "carry";

}  // namespace

std::string sync_mix_text(const SyncMix& mix) {
  return mix.carry ? std::string(kCarry) : fmt::to_string(mix.own);
}

SyncMix parse_sync_mix(std::string_view text) {
  if (text == kCarry) {
    return {.carry = true};
  }
  const auto own = parse_number<double>(text);
  if (!own || !(*own >= 0 && static_cast<float>(*own) < 1)) {
    refuse("sync_mix", excerpt(text),
           "it is carry, or the share of a node's own model, 0 to 1, 1 excluded");
  }
  return {.own = *own};
}

void check_streaming(const Streaming& streaming, Round interval) {
  if (streaming.fragments == 0) {
    refuse("fragments", "0", "1 is the model as a whole");
  }
  if (!streaming.on()) {
    return;
  }
  if (interval < 2) {
    throw Error(streaming.cause(),
                "it is for local steps; give " + mention("communication_interval") + " too");
  }
  if (streaming.fragments > kMostBuckets) {
    refuse("fragments", fmt::to_string(streaming.fragments),
           fmt::format("{} at most", kMostBuckets));
  }
  if (streaming.fragments > interval) {
    refuse("fragments", fmt::to_string(streaming.fragments),
           fmt::format("one is sent at a time, and an interval has {} steps; take no more of them",
                       interval));
  }
  const Round gap = streaming.gap(interval);
  if (streaming.delay >= gap) {
    refuse(
        "sync_delay", fmt::to_string(streaming.delay),
        fmt::format("a fragment is applied before the next is sent, and with {} in an interval of "
                    "{} one is sent every {} steps; take {} at most",
                    streaming.fragments, interval, gap, gap - 1));
  }
  if (!streaming.mix.carry &&
      !(streaming.mix.own >= 0 && static_cast<float>(streaming.mix.own) < 1)) {
    refuse("sync_mix", fmt::to_string(streaming.mix.own),
           "it is carry, or the share of a node's own model, 0 to 1, 1 excluded");
  }
}

}  // namespace sotto
