// How a scenario's file writes a link: a preset's name, or a table.
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sim/link_presets.h>
#include <sotto/study/scenario/internal/links.h>
#include <sotto/study/scenario/internal/traces.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

WrittenLink preset_of(const std::string& name) {
  const LinkPreset& found = link_preset(name);
  WrittenLink written = {.link = {.bytes_per_s = found.bytes_per_s,
                                  .latency = found.latency,
                                  .jitter = found.jitter,
                                  .loss = found.loss}};
  if (found.of_host) {
    std::swap(written.link.bytes_per_s, written.own_bytes_per_s);
  }
  return written;
}

}  // namespace

SimTime parse_latency(const std::string& text) {
  const SimTime latency = parse_duration(text);
  if (latency > kMostLatency) {
    throw Error(fmt::format("'{}' is too long: 11 days at most", text));
  }
  return latency;
}

double parse_queue(const std::string& text) {
  const double bytes = parse_size(text);
  if (bytes < kLeastQueueBytes) {
    throw Error(
        fmt::format("'{}' is too short: a queue has room for a packet of 1,500 bytes, "
                    "\"1500 B\", at least",
                    text));
  }
  return bytes;
}

WrittenLink read_link(TomlReader& in, std::string_view key) {
  if (in.holds_text(key)) {
    return *in.parsed(key, preset_of);
  }
  TomlReader figures = *in.table(key);
  WrittenLink written = figures.parsed("preset", preset_of).value_or(WrittenLink{});
  LinkSpec& link = written.link;
  if (const auto bandwidth = figures.parsed("bandwidth", parse_bandwidth)) {
    written = {.link = link, .own_bytes_per_s = kUnlimited};
    link.bytes_per_s = *bandwidth;
  }
  link.latency = figures.parsed("latency", parse_latency).value_or(link.latency);
  link.jitter = figures.parsed("jitter", parse_duration).value_or(link.jitter);
  link.loss = figures.number("loss").value_or(link.loss);
  link.loss_burst = figures.number("loss-burst").value_or(link.loss_burst);
  if (const auto trace = read_trace(figures, "trace")) {
    if (trace->stagger > 0) {
      figures.refuse("trace", "stagger is for nodes' own connections: hosts' up-trace, down-trace");
    }
    link.trace = trace->of();
  }
  if (const auto queue = figures.parsed("queue", parse_queue)) {
    if (written.own_bytes_per_s == kUnlimited && link.bytes_per_s == kUnlimited &&
        link.trace == nullptr) {
      figures.refuse("queue", "nothing waits for an unlimited link: give its bandwidth, too");
    }
    // It stands where the bandwidth does that things wait for.
    (written.own_bytes_per_s < kUnlimited ? written.own_queue_bytes : link.queue_bytes) = *queue;
  }
  if (link.loss < 0 || link.loss >= 1) {
    figures.refuse("loss", "it is a share of the packets, at least 0 and below 1: 0.04 for 4 %");
  }
  if (figures.has("loss-burst") && !(link.loss_burst * (1 - link.loss) >= 1)) {
    figures.refuse(
        "loss-burst",
        fmt::format("it is how many packets are lost in a row, on average; those that are "
                    "lost apart from each other make it {:.3g}, and less cannot be",
                    std::ceil(1e3 / (1 - link.loss)) / 1e3));
  }
  if (link.jitter > link.latency) {
    figures.refuse(figures.has("jitter") ? "jitter" : "latency",
                   "the jitter is larger than the latency: messages would arrive before they "
                   "leave");
  }
  figures.finish();
  return written;
}

LinkSpec read_link_between(TomlReader& in, std::string_view key) {
  const WrittenLink written = read_link(in, key);
  if (written.own_bytes_per_s < kUnlimited) {
    in.refuse(key,
              "this preset is of a node's own connection, which all its peers share: give it a "
              "bandwidth here, and say up and down in [network] hosts");
  }
  return written.link;
}

}  // namespace sotto::study
